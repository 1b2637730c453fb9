"""Collection, sequence and iterator sources; print and collect sinks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.builtin import (
    CollectionSource,
    CollectSink,
    IteratorSource,
    NumberSequenceSource,
    PrintSink,
    collection_source,
)
from operators.source import SplitBatch
from tests.operators.attempt import Attempt, HandClock, at_end, drain, restored_attempts
from tests.operators.attempt import started_reader as started


async def test_one_subtask_reads_a_collection_in_order() -> None:
    """At parallelism 1 the records come as they are in the list."""
    reader = await started(CollectionSource(list("abcdefg")), Attempt())
    assert drain(reader, 3) == list("abcdefg")
    assert at_end(reader)


async def test_subtasks_share_a_collection_by_strides() -> None:
    """Subtask i of n reads the items i, i + n, and so on."""
    source = NumberSequenceSource(0, 9)
    parts = [drain(await started(source, Attempt(index, 3))) for index in range(3)]
    assert parts == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


async def test_a_subtask_without_records_ends_at_once() -> None:
    """More subtasks than items: the last ones have nothing to read."""
    assert at_end(await started(CollectionSource([1]), Attempt(1, 2)))
    assert at_end(await started(CollectionSource([]), Attempt()))


async def test_a_batch_of_a_collection_is_a_list_of_its_own() -> None:
    """Changing the batch, as its owner may, does not change the collection."""
    values = [1, 2, 3]
    batch = (await started(CollectionSource(values), Attempt())).poll(10)
    assert isinstance(batch, SplitBatch)
    batch.values.clear()
    assert values == [1, 2, 3]


@given(
    count=st.integers(0, 60),
    before=st.integers(1, 4),
    after=st.integers(1, 4),
    polls=st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
async def test_rescaling_loses_and_doubles_no_record(
    count: int, before: int, after: int, polls: list[int]
) -> None:
    """Whatever was read before a checkpoint, another parallelism reads exactly the rest."""
    source = CollectionSource(list(range(count)))
    seen: list[object] = []
    states = []
    for index in range(before):
        attempt = Attempt(index, before)
        reader = await started(source, attempt)
        for _ in range(polls[index]):
            if isinstance(batch := reader.poll(5), SplitBatch):
                seen += batch.values
        reader.snapshot_state(1)
        states.append(attempt.operator_state)
    for attempt in restored_attempts(states, after):
        seen += drain(await started(source, attempt), 4)
    assert sorted(seen) == list(range(count))


async def test_a_subtask_with_several_strides_reads_them_in_turn_as_splits() -> None:
    """Each stride has a watermark of its own, so none makes the others' records late."""
    states = []
    for index in range(2):
        attempt = Attempt(index, 2)
        reader = await started(NumberSequenceSource(0, 3), attempt)
        reader.snapshot_state(1)
        states.append(attempt.operator_state)
    (attempt,) = restored_attempts(states, 1)
    reader = await started(NumberSequenceSource(0, 3), attempt)
    polled = [reader.poll(1) for _ in range(4)]
    batches = [batch for batch in polled if isinstance(batch, SplitBatch)]
    assert [(batch.split, batch.values) for batch in batches] == [
        ("stride-0", [0]),
        ("stride-1", [1]),
        ("stride-0", [2]),
        ("stride-1", [3]),
    ]
    assert at_end(reader)
    assert attempt.events == ["open stride-0", "open stride-1", "close stride-0", "close stride-1"]


async def test_a_finished_source_stays_finished_after_restore() -> None:
    """An empty restored state means that all was read, not that reading begins anew."""
    attempt = Attempt()
    reader = await started(CollectionSource([1, 2]), attempt)
    drain(reader)
    reader.snapshot_state(1)
    (again,) = restored_attempts([attempt.operator_state], 1)
    assert at_end(await started(CollectionSource([1, 2]), again))


async def test_a_record_is_named_by_source_and_number() -> None:
    """Error messages say which record it was, whatever the batch and the parallelism."""
    reader = await started(CollectionSource(list("abcdefg")), Attempt(1, 2))
    reader.poll(2)
    batch = reader.poll(2)
    assert isinstance(batch, SplitBatch)
    assert batch.origin is not None
    assert (batch.values[0], batch.origin(0)) == ("f", "clicks[5]")


async def test_a_huge_sequence_takes_no_memory() -> None:
    """The numbers are made when they are read."""
    reader = await started(NumberSequenceSource(1, 10**15), Attempt())
    batch = reader.poll(3)
    assert isinstance(batch, SplitBatch)
    assert batch.values == [1, 2, 3]


def test_a_sequence_that_goes_down_is_refused() -> None:
    """The start must not lie above the end."""
    with pytest.raises(ValueError, match="from 5 down to 1"):
        NumberSequenceSource(5, 1)


async def test_an_iterator_is_pulled_lazily_by_the_first_subtask() -> None:
    """Nothing is pulled before the first poll, and the others have nothing to read."""
    pulled = []

    def numbers() -> Iterator[int]:
        for number in range(5):
            pulled.append(number)
            yield number

    source = collection_source(numbers())
    reader = await started(source, Attempt(0, 2))
    assert at_end(await started(source, Attempt(1, 2)))
    assert pulled == []
    assert drain(reader) == [0, 1, 2, 3, 4]
    assert at_end(reader)
    assert not source.replayable


async def test_a_slow_iterator_hands_out_what_it_has() -> None:
    """Items that take long do not wait for a full batch."""
    clock = HandClock()

    def slow() -> Iterator[int]:
        for number in range(3):
            clock.set(clock.now_ms() + 50)
            yield number

    reader = await started(IteratorSource(slow()), Attempt(clock=clock))
    batch = reader.poll(1024)
    assert isinstance(batch, SplitBatch)
    assert batch.values == [0]


async def test_a_used_iterator_is_refused_on_another_attempt() -> None:
    """Records that were pulled cannot come again, so going on would lose them silently."""
    source = IteratorSource(iter([1, 2]))
    await started(source, Attempt())
    with pytest.raises(RuntimeError, match="cannot be read again"):
        await started(source, Attempt())


async def test_an_iterator_is_refused_on_a_restored_attempt() -> None:
    """A checkpoint does not know where an iterator was."""
    with pytest.raises(RuntimeError, match="give from_collection a list"):
        await started(IteratorSource({1, 2}), Attempt(restored=True))


def test_only_sequences_are_replayable_collections() -> None:
    """A tuple can be read again, a set has no positions."""
    assert collection_source((1, 2)).replayable
    assert not collection_source({1, 2}).replayable
    with pytest.raises(TypeError, match="takes an iterable, not int"):
        collection_source(3)  # type: ignore[arg-type]  # the mistake is the point


@pytest.mark.parametrize(
    ("identifier", "parallelism", "line"),
    [
        ("", 1, "home\n"),
        ("", 2, "2> home\n"),
        ("clicks", 1, "clicks> home\n"),
        ("clicks", 2, "clicks:2> home\n"),
    ],
)
def test_a_printed_line_begins_as_in_flink(
    identifier: str, parallelism: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The identifier and, if parallel, the number of the subtask from 1 stand before a record."""
    context = Attempt(parallelism - 1, parallelism)
    PrintSink(identifier).create_writer(context).write(["home"], None)
    assert capsys.readouterr().out == line


def test_printing_to_standard_error_leaves_standard_output_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The second argument chooses the stream."""
    PrintSink("", True).create_writer(Attempt()).write([1, None], [5, None])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "1\nNone\n")


def test_a_collect_sink_gathers_from_all_subtasks() -> None:
    """All writers add to the one list."""
    sink: CollectSink[int] = CollectSink()
    for index in range(2):
        sink.create_writer(Attempt(index, 2)).write([index, index + 10], None)
    assert sink.results == [0, 10, 1, 11]


def test_a_collect_sink_calls_a_callable_per_record() -> None:
    """A callable gets the records one by one."""
    seen: list[int] = []
    CollectSink(seen.append).create_writer(Attempt()).write([1, 2], None)
    assert seen == [1, 2]
