"""Writers of outgoing edges: every record to the right channel, control elements to all."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.elements import ACTIVE, IDLE, MAX_WATERMARK, RecordBatch, Watermark
from runtime import exchange
from runtime.channel import Channel
from runtime.errors import OperatorFailure
from runtime.exchange import BroadcastWriter, ForwardWriter, KeyGroupWriter, RebalanceWriter
from statebackends.keygroups import key_group_of, subtask_of
from statebackends.keys import encode_key
from tests.runtime.chain_parts import DRAINED, Relay, barrier, channel, node, taken

MAX_PARALLELISM = 128


def channels(count: int) -> list[Channel]:
    return [channel() for _ in range(count)]


def by_key(out: list[Channel], selector: Any = lambda value: value) -> KeyGroupWriter:
    return KeyGroupWriter(out, selector, MAX_PARALLELISM, node(Relay(), "sender").key_failure)


def batches(of: Channel) -> list[RecordBatch]:
    return [of.take(10**9) for _ in range(len(of.queue))]  # type: ignore[misc]  # only batches were put in


@given(
    st.lists(
        st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.booleans())),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 5),
)
def test_a_record_goes_to_the_owner_of_its_key_group(keys: list[Any], parallelism: int) -> None:
    """Sender and receiver agree on who owns a key, in a batch and one by one."""
    together, single = channels(parallelism), channels(parallelism)
    by_key(together).emit(RecordBatch(list(keys)))
    writer = by_key(single)
    for key in keys:
        writer.emit(RecordBatch([key]))

    expected: list[list[Any]] = [[] for _ in range(parallelism)]
    for key in keys:
        group = key_group_of(encode_key(key), MAX_PARALLELISM)
        expected[subtask_of(group, MAX_PARALLELISM, parallelism)].append(key)
    assert [taken(one) for one in together] == expected
    assert [taken(one) for one in single] == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers()), min_size=1, max_size=50))
def test_the_columns_of_a_split_batch_stay_together(records: list[tuple[int, int]]) -> None:
    """Value, timestamp and key of a record stay in one row, in the order of their arrival."""
    out = channels(3)
    timestamps: list[int | None] = [value for _, value in records]
    by_key(out, lambda record: record[0]).emit(RecordBatch([*records], timestamps))

    arrived = []
    for one in out:
        parts = batches(one)
        assert len(parts) <= 1
        for part in parts:
            assert part.timestamps is not None
            assert part.keys is not None
            rows = list(zip(part.values, part.timestamps, part.keys, strict=True))
            assert all(value == (key, time) for value, time, key in rows)
            assert part.values == [one for one in records if one in part.values]
            arrived += part.values
    assert sorted(arrived) == sorted(records)


def test_one_receiver_gets_the_batch_without_a_copy() -> None:
    """With a single target nothing is routed; the keys travel along."""
    (out,) = channels(1)
    values: list[object] = [1, 2, 3]
    by_key([out], lambda value: value % 2).emit(RecordBatch(values))

    (batch,) = batches(out)
    assert batch.values is values
    assert batch.keys == [1, 0, 1]


def test_the_memo_of_routes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full memo drops its oldest keys, and routing stays the same."""
    monkeypatch.setattr(exchange, "ROUTES_REMEMBERED_MAX", 10)
    out, other = channels(4), channels(4)
    writer = by_key(out)
    for start in range(0, 200, 7):
        writer.emit(RecordBatch([*range(start, start + 7)]))
        assert len(writer._routes) <= 10
    by_key(other).emit(
        RecordBatch([n for start in range(0, 200, 7) for n in range(start, start + 7)])
    )
    assert [taken(one) for one in out] == [taken(one) for one in other]


class Plain:
    def __repr__(self) -> str:
        return "a plain object"


@pytest.mark.parametrize("key", [[1], {}, math.nan, Plain()], ids=["list", "dict", "nan", "plain"])
@pytest.mark.parametrize("size", [1, 3])
def test_a_key_without_a_stable_form_is_refused(key: object, size: int) -> None:
    """The error names the operator, the record and, by its cause, the type of the key."""
    records = [("good", 1)] * (size - 1) + [("bad", key)]
    with pytest.raises(OperatorFailure, match=r"operator 'sender'.*selecting the key.*'bad'") as e:
        by_key(channels(2), lambda record: record[1]).emit(RecordBatch([*records]))
    assert type(key).__name__ in str(e.value.__cause__) or "NaN" in str(e.value.__cause__)


@pytest.mark.parametrize("receivers", [1, 2])
@pytest.mark.parametrize("failing", [0, 2, 4])
def test_a_failing_key_selector_names_its_record(receivers: int, failing: int) -> None:
    """The record at which the selector raised is in the message, with its place."""

    def select(value: int) -> int:
        if value == failing + 100:
            raise KeyError("no such field")
        return value

    batch = RecordBatch([*range(100, 105)], origin=lambda index: f"clicks[0]@{index}")
    with pytest.raises(OperatorFailure, match=rf"clicks\[0\]@{failing}, record {failing + 100}"):
        by_key(channels(receivers), select).emit(batch)


@pytest.mark.parametrize("receivers", [1, 2])
def test_a_key_selector_that_raises_stop_iteration_fails(receivers: int) -> None:
    """It must not cut the batch short."""

    def select(value: int) -> int:
        return next(iter([value] if value < 2 else []))

    with pytest.raises(OperatorFailure, match="record 2"):
        by_key(channels(receivers), select).emit(RecordBatch([0, 1, 2, 3]))


class BadHash:
    def __hash__(self) -> int:
        raise ValueError("cannot be hashed today")


def test_a_key_whose_hash_raises_is_named() -> None:
    """Any failure of a key is one of its record."""
    with pytest.raises(OperatorFailure, match="record 3"):
        by_key(channels(2), lambda value: BadHash() if value == 3 else value).emit(
            RecordBatch([1, 2, 3, 4])
        )


def test_a_part_of_a_batch_knows_where_its_records_came_from() -> None:
    """The places of records survive the split."""
    out = channels(3)
    by_key(out).emit(RecordBatch([*range(30)], origin=lambda index: f"place {index}"))
    for one in out:
        for part in batches(one):
            assert part.origin is not None
            assert [part.origin(i) for i in range(len(part))] == [f"place {v}" for v in part.values]


@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 40))
def test_rebalance_spreads_evenly(receivers: int, sender: int, count: int) -> None:
    """No receiver gets two batches more than another; senders begin at different ones."""
    out = channels(receivers)
    writer = RebalanceWriter(out, first=sender)
    for value in range(count):
        writer.emit(RecordBatch([value]))
    got = [taken(one) for one in out]
    assert max(map(len, got)) - min(map(len, got)) <= 1
    if count:
        assert got[sender % receivers][0] == 0


def test_broadcast_shares_a_batch_that_nobody_changes() -> None:
    """Each receiver gets the same object, and backlog behind it leaves it as it is."""
    out = channels(2)
    shared = RecordBatch([1, 2])
    writer = BroadcastWriter(out)
    writer.emit(shared)
    out[0].put(RecordBatch([3]))
    writer.emit(RecordBatch([4]))

    assert shared.values == [1, 2]
    assert [taken(one) for one in out] == [[1, 2, 3, 4], [1, 2, 4]]


@pytest.mark.parametrize("kind", ["forward", "broadcast", "rebalance", "key group"])
def test_control_elements_reach_every_channel(kind: str) -> None:
    """All of them, behind the records before, in one call."""
    out = channels(1 if kind == "forward" else 3)
    writer = {
        "forward": ForwardWriter,
        "broadcast": BroadcastWriter,
        "rebalance": RebalanceWriter,
        "key group": by_key,
    }[kind](out)
    elements = [IDLE, ACTIVE, Watermark(7), barrier(1), DRAINED]
    writer.emit(RecordBatch([0]))
    for element in elements:
        writer.control(element)
    for one in out:
        assert [each for each in taken(one) if each != 0] == elements


def test_before_the_end_no_last_watermark_is_sent() -> None:
    """The end says what it would say; a watermark below it still goes out."""
    out = channels(2)
    writer = BroadcastWriter(out)
    writer.control(MAX_WATERMARK)
    writer.ending = True
    writer.control(Watermark(5))
    writer.control(MAX_WATERMARK)
    writer.control(DRAINED)
    assert [taken(one) for one in out] == [[MAX_WATERMARK, Watermark(5), DRAINED]] * 2
