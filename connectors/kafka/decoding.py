"""Turns Kafka's records into values, a batch at a time, and says which ones it could not."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from connectors.kafka.errors import KafkaRecordError
from connectors.kafka.topic_partition import KafkaTopicPartition
from connectors.schemas import DeserializationSchema, check_plain, parse_json
from operators.functions import copy_function

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class KafkaRecord(NamedTuple):
    """A record as Kafka has it; what a deserializer of whole records is given.

    `timestamp` is in ms, None where the record has none; `headers` are (name, value) pairs.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class KafkaRecordDeserializationSchema(ABC, Generic[T_co]):
    """Makes a value of a whole record (Flink: `KafkaRecordDeserializationSchema`)."""

    def open(self) -> None:
        """Prepares the schema; called once for each subtask before the first record."""

    @abstractmethod
    def deserialize(self, record: KafkaRecord) -> T_co:
        """The value of the record; raises whatever says best why there is none."""


class RecordDecoder(ABC):
    """What a source's records become; described once, `copy_for_subtask` gives one to use."""

    @abstractmethod
    def copy_for_subtask(self) -> RecordDecoder:
        """A decoder with user objects of its own, opened."""

    @abstractmethod
    def decoded(self, records: Sequence[Any], where: KafkaTopicPartition) -> Iterable[object]:
        """The values of the records, one by one."""


class ValueDecoder(RecordDecoder):
    """Only values count. A record without value (a tombstone) is None, undeserialized."""

    def __init__(self, deserializer: Callable[[bytes], Any] | DeserializationSchema[Any]) -> None:
        self.deserializer = deserializer
        entry = parse_json if deserializer is json.loads else deserializer
        self._deserialize: Callable[[bytes], Any] = _entry(entry, DeserializationSchema)

    def copy_for_subtask(self) -> ValueDecoder:
        """See `RecordDecoder`."""
        return ValueDecoder(_opened(self.deserializer, DeserializationSchema))

    def decoded(self, records: Sequence[Any], where: KafkaTopicPartition) -> Iterable[object]:
        """See `RecordDecoder`."""
        values = [record.value for record in records]
        if all(values):
            return map(self._deserialize, values)
        return map(self._decode_or_none, values)

    def _decode_or_none(self, value: bytes | None) -> object:
        return None if value is None else self._deserialize(value)


class WholeRecordDecoder(RecordDecoder):
    """Key, value, headers, timestamp and place count."""

    def __init__(
        self,
        deserializer: Callable[[KafkaRecord], Any] | KafkaRecordDeserializationSchema[Any],
    ) -> None:
        self.deserializer = deserializer
        self._deserialize: Callable[[KafkaRecord], Any] = _entry(
            deserializer, KafkaRecordDeserializationSchema
        )

    def copy_for_subtask(self) -> WholeRecordDecoder:
        """See `RecordDecoder`."""
        return WholeRecordDecoder(_opened(self.deserializer, KafkaRecordDeserializationSchema))

    def decoded(self, records: Sequence[Any], where: KafkaTopicPartition) -> Iterable[object]:
        """See `RecordDecoder`."""
        topic, partition = where.topic, where.partition
        return map(
            self._deserialize,
            [
                KafkaRecord(
                    topic,
                    partition,
                    each.offset,
                    None if each.timestamp == -1 else each.timestamp,
                    each.key,
                    each.value,
                    tuple(each.headers),
                )
                for each in records
            ],
        )


class Decoded(NamedTuple):
    """Values with the records they came from, and what went to a side output instead."""

    values: list[object]
    records: Sequence[Any]
    side: list[tuple[str, object]] | None


def decode(
    decoder: RecordDecoder,
    records: Sequence[Any],
    where: KafkaTopicPartition,
    on_error: str,
    side_tag: str | None,
) -> Decoded:
    """Decodes a batch; each record is deserialized once, also where one of them fails.

    Args:
        decoder: makes the values.
        records: the client's records.
        where: the partition that they are of.
        on_error: "fail", "skip" or "side": what becomes of records that cannot be decoded.
        side_tag: the side output for them.

    Raises:
        KafkaRecordError: a record could not be decoded, `on_error` is "fail".
    """
    values: list[object] = []
    kept: list[Any] | None = None
    side: list[tuple[str, object]] = []
    rest = records
    while True:
        before = len(values)
        try:
            # What was decoded before a failure stays in the list.
            values.extend(decoder.decoded(rest, where))
            if len(values) - before < len(rest):
                # To `extend` a StopIteration of the deserializer looks like the end.
                raise RuntimeError("the deserializer raised StopIteration")
        except Exception as error:
            good = len(values) - before
            bad = rest[good]
            if on_error == "fail":
                raise KafkaRecordError(
                    f"the record at {where}@{bad.offset} could not be deserialized: "
                    f"{type(error).__name__}: {error}; correct the deserializer, or let such "
                    "records go by set_deserialization_errors('skip') or an OutputTag"
                ) from error
            if side_tag is not None:
                reason = f"{type(error).__name__}: {error}"
                place = (where.topic, where.partition, bad.offset)
                side.append((side_tag, (*place, bad.key, bad.value, reason)))
            kept = [*(kept or ()), *rest[:good]]
            rest = rest[good + 1 :]
        else:
            break
    if kept is None:
        return Decoded(values, records, None)
    return Decoded(values, [*kept, *rest], side or None)


def _entry(deserializer: Any, schema: type) -> Any:
    if isinstance(deserializer, schema):
        return deserializer.deserialize  # type: ignore[attr-defined]  # every schema has it
    if not callable(deserializer):
        raise TypeError(
            f"a deserializer is a callable or a {schema.__name__}, not {deserializer!r:.80}"
        )
    check_plain(deserializer, "a deserializer")
    return deserializer


def _opened(deserializer: Any, schema: type) -> Any:
    copied = copy_function(deserializer)
    if isinstance(copied, schema):
        copied.open()  # type: ignore[attr-defined]  # every schema has it
    return copied
