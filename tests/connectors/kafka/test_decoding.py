"""What becomes of records that can and of those that cannot be deserialized."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.decoding import (
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    ValueDecoder,
    WholeRecordDecoder,
    decode,
)
from connectors.kafka.errors import KafkaRecordError
from connectors.kafka.topic_partition import KafkaTopicPartition
from connectors.schemas import DeserializationSchema, SimpleStringSchema

WHERE = KafkaTopicPartition("t", 2)


def record(offset: int, value: bytes | None) -> Any:
    return SimpleNamespace(offset=offset, timestamp=-1, key=None, value=value, headers=[])


@given(st.lists(st.sampled_from([b"1", b"{", b"", None]), max_size=12))
def test_each_record_is_deserialized_once(values: list[bytes | None]) -> None:
    """Also where others fail; good ones keep order and place, bad ones are told apart."""
    calls: list[bytes] = []

    def parse(value: bytes) -> int:
        calls.append(value)
        return int(value)

    records = [record(offset, value) for offset, value in enumerate(values)]
    decoded = decode(ValueDecoder(parse), records, WHERE, "side", "bad")
    assert calls == [value for value in values if value is not None]
    good = [offset for offset, value in enumerate(values) if value in (b"1", None)]
    assert decoded.values == [None if values[offset] is None else 1 for offset in good]
    assert [each.offset for each in decoded.records] == good
    bad = [value[2] for _, value in decoded.side or ()]
    assert sorted(good + bad) == list(range(len(values)))


def test_a_failure_names_the_record_and_keeps_the_cause() -> None:
    """Topic, partition, offset, and the deserializer's own error."""
    records = [record(40, b"1"), record(42, b"x")]
    with pytest.raises(KafkaRecordError, match=r"t\[2\]@42 .*JSONDecodeError") as failure:
        decode(ValueDecoder(json.loads), records, WHERE, "fail", None)
    assert isinstance(failure.value.__cause__, json.JSONDecodeError)


def test_a_deserializer_that_stops_iterating_is_a_failure() -> None:
    """A StopIteration from user code does not silently end the batch."""

    def stop(value: bytes) -> None:
        raise StopIteration

    with pytest.raises(KafkaRecordError, match=r"t\[2\]@7"):
        decode(ValueDecoder(stop), [record(7, b"1")], WHERE, "fail", None)


def test_a_schema_is_copied_and_opened_for_each_subtask() -> None:
    """The described one stays untouched."""

    class Counting(DeserializationSchema[int]):
        opened = 0

        def open(self) -> None:
            self.opened += 1

        def deserialize(self, message: bytes) -> int:
            return self.opened

    described = Counting()
    decoder = ValueDecoder(described).copy_for_subtask()
    assert decode(decoder, [record(0, b"x")], WHERE, "fail", None).values == [1]
    assert described.opened == 0


def test_whole_records_are_given_with_their_place() -> None:
    """A record without timestamp has None."""

    class Place(KafkaRecordDeserializationSchema[tuple[str, int, int, object]]):
        def deserialize(self, record: KafkaRecord) -> tuple[str, int, int, object]:
            return record.topic, record.partition, record.offset, record.timestamp

    decoder = WholeRecordDecoder(Place()).copy_for_subtask()
    assert decode(decoder, [record(5, b"x")], WHERE, "fail", None).values == [("t", 2, 5, None)]


def test_what_is_no_deserializer_is_refused() -> None:
    """At the line that passes it."""
    with pytest.raises(TypeError, match="a callable or a DeserializationSchema"):
        ValueDecoder("json")  # type: ignore[arg-type]  # the mistake under test


def test_a_string_schema_deserializes() -> None:
    """Schemas do wherever callables do."""
    decoded = decode(ValueDecoder(SimpleStringSchema()), [record(0, b"x")], WHERE, "fail", None)
    assert decoded.values == ["x"]
