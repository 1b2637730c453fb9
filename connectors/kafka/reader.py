"""Reads the partitions of one subtask."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, TypeVar

from connectors.kafka.client import KafkaCluster
from connectors.kafka.complaints import Complaints
from connectors.kafka.decoding import decode
from connectors.kafka.errors import KafkaConnectorError
from connectors.kafka.fetcher import PartitionFetcher
from connectors.kafka.settings import SourceSettings
from connectors.kafka.split import PartitionSplit, SplitAssignment, SplitEntry
from connectors.kafka.topic_partition import KafkaTopicPartition, split_owner
from operators.output_tag import OutputTag
from operators.source import InputStatus, SourceReader, SourceReaderContext, SplitBatch
from statebackends.descriptors import ListStateDescriptor
from statebackends.errors import CorruptCheckpointError

T = TypeVar("T")

_logger = logging.getLogger("riverrun.kafka")
_COMMIT_SECONDS = 10.0


class KafkaSourceReader(SourceReader[T]):
    """The reader of one subtask of a Kafka source (Flink: `KafkaSourceReader`).

    Partitions with records take turns, a batch each. Their positions are operator union list
    state: each subtask is given all of them and keeps those that it owns.
    """

    def __init__(self, context: SourceReaderContext, settings: SourceSettings) -> None:
        super().__init__(context)
        self._settings = settings
        self._decoder = settings.decoder.copy_for_subtask()
        errors = settings.deserialization_errors
        self._side_tag = errors.tag_id if isinstance(errors, OutputTag) else None
        self._on_error = errors if isinstance(errors, str) else "side"
        self._splits: dict[KafkaTopicPartition, PartitionSplit] = {}
        self._ready: deque[PartitionSplit] = deque()
        self._no_more_splits = False
        self._cluster: KafkaCluster | None = None
        self._fetcher: PartitionFetcher | None = None
        self._complaints = Complaints(context.clock, "Kafka source")
        self._to_commit: dict[int, dict[KafkaTopicPartition, int]] = {}
        self._committed: dict[KafkaTopicPartition, int] = {}
        self._commit: asyncio.Task[None] | None = None
        self._commit_next: dict[KafkaTopicPartition, int] | None = None
        self._skipped = context.metrics.counter("numRecordsInErrors")
        context.metrics.gauge("pendingRecords", self._pending_records)
        context.metrics.gauge("pendingBytes", self._pending_bytes)

    # -- life -----------------------------------------------------------------------------------

    def initialize_state(self) -> None:
        """Takes over the partitions that this subtask owns.

        Raises:
            CorruptCheckpointError: a partition occurs twice.
        """
        self._state = self.context.operator_state.get_union_list_state(
            ListStateDescriptor[tuple[Any, ...]]("kafka-splits")
        )
        entries = [SplitEntry(*entry) for entry in self._state.get()]
        counts = Counter((entry.topic, entry.partition) for entry in entries)
        doubled = sorted(f"{topic}[{n}]" for (topic, n), count in counts.items() if count > 1)
        if doubled:
            raise CorruptCheckpointError(
                f"the checkpoint holds positions of {', '.join(doubled)} more than once"
            )
        for entry in entries:
            split = PartitionSplit.of_entry(entry)
            if not self._owns(split.partition):
                continue
            if not self._settings.subscription.covers(split.partition):
                _logger.warning(
                    "%s was read before and is no longer subscribed: its position (%d) is dropped",
                    split.name,
                    split.next_offset,
                )
                continue
            if split.stopping_offset is not None and self._settings.stopping_offsets is None:
                _logger.warning(
                    "%s keeps the end that it was given before: it is read up to offset %d, "
                    "although the source is unbounded now",
                    split.name,
                    split.stopping_offset,
                )
            self._splits[split.partition] = split

    async def start(self) -> None:
        """Connects and begins to fetch.

        Raises:
            KafkaUnreachableError: no broker answered in time.
        """
        context = self.context
        self._cluster = self._settings.cluster(f"source-{context.subtask_index}", context.clock)
        await self._cluster.connect()
        self._fetcher = PartitionFetcher(
            self._cluster,
            self._settings.options,
            self._settings.expired_offsets,
            self._has_data,
            context.fail,
        )
        for split in self._splits.values():
            self._open(split)
        self._fetcher.start()

    async def close(self) -> None:
        """Closes the client; a commit under way gets a moment to end."""
        if self._commit is not None:
            await asyncio.wait([self._commit], timeout=2)
            self._commit.cancel()
        if self._fetcher is not None:
            await self._fetcher.close()
        if self._cluster is not None:
            await self._cluster.close()

    def add_splits(self, splits: Sequence[object]) -> None:
        """Reads more partitions; one that is there already only gets the end that it lacks."""
        for assignment in splits:
            assert isinstance(assignment, SplitAssignment)
            where, stop = assignment.partition, assignment.stopping_offset
            split = self._splits.get(where)
            if split is None:
                split = self._splits[where] = PartitionSplit(where, assignment.start_offset, stop)
                self._open(split)
            elif split.stopping_offset is None and stop is not None:
                # It was read without an end before; a source that has one now must reach it.
                split.stop_at(stop)
                if split.finished:
                    self._close(split)

    def no_more_splits(self) -> None:
        """The reader ends when it has read what it has."""
        self._no_more_splits = True
        self.context.available()

    def _open(self, split: PartitionSplit) -> None:
        if split.finished or self._fetcher is None:
            return
        self.context.split_opened(split.name)
        self._fetcher.add(split)

    def _close(self, split: PartitionSplit) -> None:
        if split in self._ready:
            self._ready.remove(split)
        self.context.split_closed(split.name)
        self.context.available()

    def _owns(self, partition: KafkaTopicPartition) -> bool:
        owner = split_owner(partition.topic, partition.partition, self.context.parallelism)
        return owner == self.context.subtask_index

    # -- reading --------------------------------------------------------------------------------

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        """The next records of the partition whose turn it is.

        Raises:
            KafkaRecordError: a record cannot be deserialized and such errors are to fail.
            KafkaConnectorError: a batch cannot be decoded.
        """
        while self._ready:
            split = self._ready.popleft()
            records = self._take(split, records_max)
            if split.has_segments:
                self._ready.append(split)
            if split.finished:
                self.context.split_closed(split.name)
            if records:
                batch = self._batch(split, records)
                if batch is not None:
                    return batch
        if self._no_more_splits and all(split.finished for split in self._splits.values()):
            return InputStatus.END_OF_INPUT
        return InputStatus.NOTHING_AVAILABLE

    def _take(self, split: PartitionSplit, records_max: int) -> list[Any]:
        assert self._fetcher is not None
        before = split.buffered
        try:
            records = split.take(records_max)
        except Exception as error:
            raise KafkaConnectorError(
                f"the records of {split.name} from offset {split.next_offset} on cannot be "
                f"decoded: {error} (compressed topics need: pip install "
                "'riverrun[kafka-compression]')"
            ) from error
        if split.buffered != before:
            self._fetcher.room_made()
        return records

    def _batch(self, split: PartitionSplit, records: list[Any]) -> SplitBatch | None:
        decoded = decode(self._decoder, records, split.partition, self._on_error, self._side_tag)
        self._skipped.count += len(records) - len(decoded.values)
        if not decoded.values and not decoded.side:
            return None
        kept = decoded.records
        timestamps: list[int | None] = [record.timestamp for record in kept]
        if -1 in timestamps:
            timestamps = [None if each == -1 else each for each in timestamps]
        name = split.name
        return SplitBatch(
            decoded.values,
            timestamps,
            name,
            lambda index: f"{name}@{kept[index].offset}",
            decoded.side,
        )

    def _has_data(self, split: PartitionSplit) -> None:
        if split not in self._ready:
            self._ready.append(split)
        self.context.available()

    def _pending_records(self) -> int:
        """How far this reader is behind the ends of its partitions, as of their last fetches."""
        return sum(
            max(0, split.end_offset - split.next_offset)
            for split in self._splits.values()
            if split.end_offset is not None and not split.finished
        )

    def _pending_bytes(self) -> int:
        return sum(split.buffered for split in self._splits.values())

    # -- checkpoints ----------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> None:
        """See `SourceReader`."""
        entries = [tuple(split.entry()) for split in self._splits.values()]
        self._state.update(entries)
        if self._settings.commits:
            self._to_commit[checkpoint_id] = {
                split.partition: split.next_offset for split in self._splits.values()
            }

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Commits the offsets of that checkpoint to the group, for monitoring only."""
        offsets = self._to_commit.get(checkpoint_id)
        for older in [each for each in self._to_commit if each <= checkpoint_id]:
            del self._to_commit[older]
        if offsets:
            self._commit_next = offsets
            if self._commit is None or self._commit.done():
                self._commit = asyncio.get_running_loop().create_task(self._commit_offsets())

    async def _commit_offsets(self) -> None:
        """Commits until nothing newer is waiting; a failure is reported, it endangers nothing."""
        assert self._cluster is not None
        while self._commit_next is not None:
            offsets, self._commit_next = self._commit_next, None
            changed = {
                each: offset
                for each, offset in offsets.items()
                if self._committed.get(each) != offset
            }
            if not changed:
                continue
            try:
                async with asyncio.timeout(_COMMIT_SECONDS):
                    await self._cluster.commit(changed)
            except (KafkaConnectorError, TimeoutError) as error:
                self._complaints.say(f"offsets were not committed to the group: {error}")
            else:
                self._committed.update(changed)
