"""Writes the records of one subtask to Kafka, in the background, at most up to a bound.

Records go into a batch per partition. A batch is sent at once where nothing is on its way to
its partition; what comes meanwhile forms the next one. So batches grow with the load and a
lone record does not wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

from connectors.kafka.binding import AIOKafkaProducer, kafka_errors
from connectors.kafka.client import (
    MISSING_TOPIC_SECONDS,
    KafkaCluster,
    close_bounded,
    describe,
    quiet_client_logging,
)
from connectors.kafka.complaints import Complaints
from connectors.kafka.errors import (
    KafkaConnectorError,
    KafkaRecordError,
    KafkaTopicError,
    KafkaUnreachableError,
)
from connectors.kafka.lane import Batch, Lane
from connectors.kafka.options import Options
from connectors.kafka.serialization import KafkaProducerRecord, KafkaRecordSerializationSchema
from connectors.kafka.subscription import Subscription
from connectors.kafka.target_topic import TargetTopic
from operators.functions import copy_function
from operators.sink import SinkWriter, SinkWriterContext

T_contra = TypeVar("T_contra", contravariant=True)

TIMEOUT_SETTING = "max.block.ms"
TIMEOUT_MS = 30_000
DELIVERY_TIMEOUT_MS = 30_000
BUFFER_BYTES = 16 * 1024 * 1024
BATCH_BYTES = 256 * 1024
_CHECK_SECONDS = 5.0
"""How long an acknowledgement takes before it is looked whether the topic is still there."""


class KafkaWriter(SinkWriter[T_contra]):
    """The writer of one subtask of a Kafka sink (Flink: `KafkaWriter`).

    Args:
        context: what the task gives.
        options: settings of the sink.
        serializer: makes the records; copied for this subtask.
        acks: -1, 1 or 0.
        waits: whether `flush` waits for acknowledgements at checkpoints.
    """

    def __init__(
        self,
        context: SinkWriterContext,
        options: Options,
        serializer: KafkaRecordSerializationSchema[Any],
        acks: int,
        waits: bool,
    ) -> None:
        self._context = context
        self._options = options
        self._serializer = copy_function(serializer)
        self._serializer.open()
        self._acks = acks
        self._waits = waits
        self._delivery_ms = options.number("delivery_timeout_ms", DELIVERY_TIMEOUT_MS)
        self._linger_ms = options.number("linger_ms", 0)
        self._record_bytes_max = options.number("max_request_size", 1024 * 1024)
        self._buffer_bytes_max = options.number("buffer_memory", BUFFER_BYTES)
        self._buffered = 0
        self._full = False
        self._topics: dict[str, TargetTopic] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress = asyncio.Event()
        self._failure: BaseException | None = None
        self._producer: Any = None
        self._complaints = Complaints(context.clock, "Kafka sink")
        self._sent = context.metrics.counter("numRecordsSend")
        context.metrics.gauge("bufferedBytes", lambda: self._buffered)

    # -- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connects and looks for the topic, where it is one for all records.

        Raises:
            KafkaUnreachableError: no broker answered in time.
            KafkaTopicError: the topic does not exist.
        """
        options, context = self._options, self._context
        quiet_client_logging()
        client_id = f"sink-{context.subtask_index}"
        compression = options.text("compression_type", "none")
        try:
            self._producer = AIOKafkaProducer(
                **options.client_arguments(client_id),
                acks=self._acks,
                enable_idempotence=options.flag("enable_idempotence", False),
                max_batch_size=options.number("batch_size", BATCH_BYTES),
                max_request_size=self._record_bytes_max,
                compression_type=None if compression == "none" else compression,
            )
        except RuntimeError as error:
            raise KafkaConnectorError(
                f"compression.type {compression!r} cannot be used: {error} "
                "(pip install 'riverrun[kafka-compression]')"
            ) from error
        timeout_ms = options.number("max_block_ms", TIMEOUT_MS)
        self._cluster = KafkaCluster(
            options, client_id, context.clock, TIMEOUT_SETTING, timeout_ms, self._producer.client
        )
        await self._cluster.connect_by(self._producer.start)
        if self._serializer.topic is not None:
            await self._look_up(self._topic(self._serializer.topic))

    async def close(self) -> None:
        """Drops what is not acknowledged and closes the client."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        if self._producer is not None:
            unsent = self._buffered > 0
            await close_bounded(self._abandon() if unsent else self._producer.stop())

    async def _abandon(self) -> None:
        """Closes the client without sending what it still has, which its own stop waits for."""
        producer = self._producer
        producer._closed = True
        sending = producer._sender.sender_task
        # The first cancel lets requests on their way end, the second one does not.
        for _ in range(2):
            if sending is not None and not sending.done():
                sending.cancel()
                await asyncio.wait([sending], timeout=1)
        await producer.client.close()

    # -- taking ---------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """See `SinkWriter`."""
        return self._buffered < self._buffer_bytes_max

    def write(self, values: Sequence[T_contra], timestamps: Sequence[int | None] | None) -> None:
        """Serializes the batch and has it sent.

        Raises:
            KafkaRecordError: a value cannot be serialized or is too large.
            KafkaConnectorError: an earlier record could not be written.
        """
        if self._failure is not None:
            raise self._failure
        touched: set[Lane] = set()
        for topic in self._topics.values():
            topic.round_robin += 1
        for index, value in enumerate(values):
            timestamp = None if timestamps is None else timestamps[index]
            record = self._record(value, timestamp)
            if record is None:
                continue
            topic = self._topic(record.topic)
            if topic.partitions:
                touched.add(self._append(topic, record))
            else:
                topic.waiting.append(record)
                self._buffered += len(record.value or b"") + len(record.key or b"")
        for lane in touched:
            self._send(lane)
        self._full = not self.has_room

    def _record(self, value: Any, timestamp: int | None) -> KafkaProducerRecord | None:
        try:
            record = self._serializer.serialize(value, timestamp, self._partitions_of)
        except Exception as error:
            raise KafkaRecordError(
                f"a value could not be serialized for Kafka: {type(error).__name__}: {error}; "
                f"the value: {value!r:.200}"
            ) from error
        if record is not None:
            for part, given in (("key", record.key), ("value", record.value)):
                if given is not None and not isinstance(given, (bytes, bytearray, memoryview)):
                    raise KafkaRecordError(
                        f"the {part} serializer for topic {record.topic!r} has to give bytes or "
                        f"None, not {type(given).__name__} {given!r:.80}"
                    )
                if given is not None and len(given) > self._record_bytes_max:
                    raise KafkaRecordError(
                        f"a {part} for topic {record.topic!r} has {len(given)} bytes, "
                        f"max.request.size allows {self._record_bytes_max}"
                    )
        return record

    def _append(self, topic: TargetTopic, record: KafkaProducerRecord) -> Lane:
        partition = topic.partition_of(record)
        lane = topic.lanes.get(partition)
        if lane is None:
            lane = topic.lanes[partition] = Lane(self._producer, topic.name, partition)
        timestamp = record.timestamp
        if timestamp is not None and timestamp < 0:
            # Kafka has no times before 1970.
            timestamp = None
        try:
            self._buffered += lane.append(record.key, record.value, record.headers, timestamp)
        except (TypeError, ValueError, AttributeError) as error:
            raise KafkaRecordError(
                f"a record for {lane.name} could not be encoded: {error}; its timestamp is "
                f"{timestamp!r}, its headers are {record.headers!r:.200}"
            ) from error
        return lane

    # -- topics ---------------------------------------------------------------------------------

    def _topic(self, name: str) -> TargetTopic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = TargetTopic(name, self._context.subtask_index)
            if name != self._serializer.topic:
                self._spawn(self._resolve(topic))
        return topic

    def _partitions_of(self, name: str) -> list[int]:
        return self._topic(name).partitions

    async def _look_up(self, topic: TargetTopic) -> None:
        found = await self._cluster.select_partitions(
            Subscription(topics=(topic.name,)), MISSING_TOPIC_SECONDS
        )
        topic.know(sorted(each.partition for each in found))

    async def _resolve(self, topic: TargetTopic) -> None:
        """Looks for a topic that a value named first, then sends what waited for it."""
        await self._look_up(topic)
        waiting, topic.waiting = topic.waiting, []
        touched = set()
        for record in waiting:
            self._buffered -= len(record.value or b"") + len(record.key or b"")
            touched.add(self._append(topic, record))
        for lane in touched:
            self._send(lane)

    # -- sending --------------------------------------------------------------------------------

    def _send(self, lane: Lane) -> None:
        if not lane.active:
            lane.active = True
            self._spawn(self._drain(lane))

    async def _drain(self, lane: Lane) -> None:
        """Sends the batches of a lane one after the other until there is none."""
        try:
            if self._linger_ms and not lane.has_full_batch:
                await self._context.clock.sleep(self._linger_ms / 1000)
            while (batch := lane.take()) is not None:
                await self._deliver(lane, batch)
                lane.acknowledged += batch.records
                self._sent.count += batch.records
                self._buffered -= batch.size
                self._progress.set()
                if self._full and self.has_room:
                    self._full = False
                    self._context.room_freed()
        finally:
            lane.active = False

    async def _deliver(self, lane: Lane, batch: Batch) -> None:
        """Returns when the batch is acknowledged; raises when it will not be."""
        clock = self._context.clock
        deadline = clock.monotonic() + self._delivery_ms / 1000
        topic, partition = lane.topic, lane.partition
        delivery = asyncio.ensure_future(self._deliver_batch(batch, topic, partition))
        try:
            while not delivery.done():
                left = deadline - clock.monotonic()
                if left <= 0:
                    raise KafkaConnectorError(
                        f"records for {lane.name} at {self._cluster.address} were not "
                        f"acknowledged within {self._delivery_ms} ms (delivery.timeout.ms)"
                    )
                await asyncio.wait([delivery], timeout=min(left, _CHECK_SECONDS))
                if not delivery.done():
                    self._complaints.say(
                        f"{lane.name} has not acknowledged for a while, still trying"
                    )
                    await self._check_exists(topic, deadline - clock.monotonic())
            try:
                delivery.result()
            except kafka_errors.KafkaError as error:
                await self._check_exists(topic, _CHECK_SECONDS)
                # A broker may take them after a new start, unless a record itself is refused.
                kind = KafkaRecordError if _refused(error) else KafkaConnectorError
                raise kind(
                    f"records for {lane.name} at {self._cluster.address} could not be written: "
                    f"{describe(error)}"
                ) from error
        finally:
            delivery.cancel()

    async def _deliver_batch(self, batch: Batch, topic: str, partition: int) -> None:
        await (await self._producer.send_batch(batch.builder, topic, partition=partition))
        known = self._producer.client.cluster.partitions_for_topic(topic)
        self._topics[topic].know(sorted(known or ()))

    async def _check_exists(self, topic: str, seconds: float) -> None:
        """Raises `KafkaTopicError` if the brokers say within `seconds` that there is no topic."""
        try:
            async with asyncio.timeout(min(max(seconds, 0), _CHECK_SECONDS)):
                found = await self._cluster.partitions([topic])
        except (KafkaUnreachableError, TimeoutError):
            return
        if topic not in found:
            raise KafkaTopicError(
                f"topic {topic!r} at {self._cluster.address} does not exist any more: it was "
                "deleted while the job wrote to it"
            )

    # -- waiting --------------------------------------------------------------------------------

    async def flush(self, end_of_input: bool) -> None:
        """Waits until all that was written before is acknowledged.

        Raises:
            KafkaConnectorError: something could not be written.
        """
        if not self._waits and not end_of_input:
            return
        while any(topic.waiting for topic in self._topics.values()):
            await self._next_progress()
        targets = [
            (lane, lane.appended)
            for topic in self._topics.values()
            for lane in topic.lanes.values()
        ]
        while any(lane.acknowledged < target for lane, target in targets):
            await self._next_progress()
        if self._failure is not None:
            raise self._failure

    async def _next_progress(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._progress.clear()
        await self._progress.wait()

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failure is None:
            self._failure = error
            self._context.fail(error)
        self._progress.set()


def _refused(error: kafka_errors.KafkaError) -> bool:
    """Whether the broker will never take these records."""
    return isinstance(
        error, kafka_errors.MessageSizeTooLargeError | kafka_errors.InvalidTimestampError
    )
