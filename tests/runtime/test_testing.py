"""The operator harness: steps, outputs and misuse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from operators.elements import MAX_TIMESTAMP, RecordBatch
from operators.stream_operator import StreamOperator, Work
from runtime import (
    CollectSink,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    TumblingEventTimeWindows,
    WindowCount,
)
from runtime.testing import ACTIVE, IDLE, EmittedRecord, OperatorHarness, Watermark
from tests.runtime.counting_function import ODD, Counting, itself
from tests.runtime.traced_function import SPAN, Traced


def counting(**options: Any) -> OperatorHarness:
    return OperatorHarness.of_function(Counting(), itself, **options)


def test_a_step_returns_what_it_caused() -> None:
    """A record's outputs carry its timestamp; side outputs stand among them with their tag."""
    harness = counting()
    assert harness.process("a", timestamp=1) == [
        EmittedRecord(("a", 1), 1),
        EmittedRecord("a", 1, side="odd"),
    ]


def test_outputs_are_kept_by_kind() -> None:
    """Main output and side outputs can be asked for at the end."""
    harness = counting()
    harness.process_all(["a", "a", "b"], [1, 2, 3])
    assert harness.values() == [("a", 1), ("a", 2), ("b", 1)]
    assert harness.side_output(ODD) == [
        EmittedRecord("a", 1, side="odd"),
        EmittedRecord("b", 3, side="odd"),
    ]


def test_a_watermark_fires_timers_and_follows_them() -> None:
    """Timers fire in the order of time, then the watermark comes out."""
    harness = counting()
    harness.process_all(["b", "a"], [2, 1])
    assert harness.watermark(12) == [
        EmittedRecord(("a", 1, "EVENT_TIME"), 11),
        EmittedRecord(("b", 1, "EVENT_TIME"), 12),
        Watermark(12),
    ]


def test_a_status_passes() -> None:
    """Going idle and active comes out once each, as in a job."""
    harness = counting()
    assert harness.idle() == [IDLE]
    assert harness.idle() == []
    assert harness.active() == [ACTIVE]


def test_what_a_job_would_drop_is_dropped() -> None:
    """A watermark that does not rise never reaches the operators."""
    harness = counting()
    harness.watermark(5)
    assert harness.watermark(5) == harness.watermark(4) == []


def test_watermarks_can_go_straight_to_the_operator() -> None:
    """Without the valve each watermark comes through as it is."""
    harness = counting(through_valve=False)
    assert harness.watermark(5) + harness.watermark(5) == [Watermark(5), Watermark(5)]


def test_the_end_of_the_input_flushes() -> None:
    """The final watermark fires what waits, and is the last thing that comes."""
    harness = counting()
    harness.process("a", timestamp=1)
    assert harness.end_input() == [
        EmittedRecord(("a", 1, "EVENT_TIME"), 11),
        Watermark(MAX_TIMESTAMP),
    ]


def test_nothing_can_be_given_after_the_end() -> None:
    """A record after the end of the input is a mistake of the test."""
    harness = counting()
    harness.end_input()
    with pytest.raises(RuntimeError, match="ended"):
        harness.process("a")


@pytest.mark.parametrize("batch_records", [1, 7, 1024])
def test_batches_are_as_large_as_they_may_be(batch_records: int) -> None:
    """Records that are all there reach the operator in full batches, the rest in a last one."""
    sizes: list[int] = []

    class Measuring(StreamOperator):
        def process_batch(self, batch: RecordBatch) -> Work:
            sizes.append(len(batch))
            return ()

    OperatorHarness.of_operator(Measuring, batch_records=batch_records).process_all(range(2_000))
    full, rest = divmod(2_000, batch_records)
    assert sizes == [batch_records] * full + ([rest] if rest else [])


def test_state_timers_and_metrics_can_be_looked_at() -> None:
    """Over all subtasks: entries of state, timers of both kinds, counters."""
    harness = counting(parallelism=3)
    harness.process_all(["a", "b", "a", "c"], [1, 2, 3, None])
    assert harness.state_entries() == 3
    assert harness.event_time_timers() == 3
    assert harness.processing_time_timers() == 1
    assert harness.metric("seen") == 4


def test_an_unknown_metric_names_those_there_are() -> None:
    """The error of a mistyped metric shows the right one."""
    with pytest.raises(KeyError, match="'seen'"):
        counting().metric("sean")


def test_several_operators_run_as_one_pipeline() -> None:
    """Tasks, exchanges by key and watermarks between them are those of a job."""
    harness = OperatorHarness.of(
        lambda words: (
            words.flat_map(str.split)
            .key_by(itself)
            .window(TumblingEventTimeWindows.of(10))
            .count()
            .key_by(lambda count: count.count)
            .window(TumblingEventTimeWindows.of(100))
            .count()
        ),
        parallelism=2,
    )
    harness.process_all(["a b a", "c b"], [1, 5])
    harness.end_input()
    assert sorted(harness.values()) == [WindowCount(1, 0, 100, 1), WindowCount(2, 0, 100, 2)]


def test_a_pipeline_may_end_in_a_sink() -> None:
    """What a sink got is asked of the sink."""
    sink = CollectSink[int]()
    harness = OperatorHarness.of(lambda numbers: numbers.map(lambda n: n + 1).sink_to(sink))
    assert harness.process_all([1, 2]) == []
    assert sink.results == [2, 3]


class Doubling(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return 2 * value


class Both(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterable[int]:
        return [value, -value]


class Adding(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


@pytest.mark.parametrize(
    ("function", "key_selector", "values"),
    [
        (Doubling(), None, [2, 4, 6]),
        (Doubling(), itself, [2, 4, 6]),
        (Both(), None, [1, -1, 2, -2, 3, -3]),
        (Adding(), lambda n: n % 2, [1, 2, 4]),
    ],
)
def test_a_function_gets_its_operator(function: Any, key_selector: Any, values: Any) -> None:
    """The class of a function says what runs it."""
    harness = OperatorHarness.of_function(function, key_selector)
    harness.process_all([1, 2, 3])
    assert harness.values() == values


def test_a_keyed_function_without_key_is_refused() -> None:
    """The error says what is missing."""
    with pytest.raises(TypeError, match="key_selector"):
        OperatorHarness.of_function(Counting())


def test_a_builder_that_returns_nothing_is_refused() -> None:
    """A forgotten return is named."""
    with pytest.raises(TypeError, match="must return"):
        OperatorHarness.of(lambda stream: None)  # type: ignore[arg-type, return-value]  # the mistake


def test_a_failure_is_the_users_error_with_its_place() -> None:
    """The exception of user code comes out of the step; a note has operator and record."""
    harness = OperatorHarness.of(lambda numbers: numbers.map(lambda n: 1 // n))
    with pytest.raises(ZeroDivisionError) as caught:
        harness.process_all([1, 0])
    assert "'Map'" in caught.value.__notes__[0]
    assert "record 0" in caught.value.__notes__[0]


def test_a_failed_harness_says_so() -> None:
    """Nothing goes on after a failure."""
    harness = OperatorHarness.of(lambda numbers: numbers.map(lambda n: 1 // n))
    with pytest.raises(ZeroDivisionError):
        harness.process(0)
    with pytest.raises(RuntimeError, match="failed"):
        harness.process(1)


def test_a_failing_open_comes_out_of_the_constructor() -> None:
    """Nothing is left half open."""

    class Broken(Counting):
        def open(self, runtime_context: Any) -> None:
            raise LookupError("no model")

    closed = Counting.closed
    with pytest.raises(LookupError, match="no model"):
        OperatorHarness.of_function(Broken(), itself)
    assert Counting.closed == closed + 1


def test_leaving_the_harness_closes_the_functions() -> None:
    """One close for each copy, though `close` is called twice."""
    closed = Counting.closed
    with counting(parallelism=2) as harness:
        harness.close()
    assert Counting.closed == closed + 2


@pytest.mark.parametrize("reset_at", [2, None])
def test_context_variables_last_from_open_to_close(reset_at: int | None) -> None:
    """As in a job; the test has its own."""
    with OperatorHarness.of_function(Traced(reset_at)) as harness:
        harness.process_all([1, 2, 3])
        last = "opened" if reset_at is None else "nothing"
        assert harness.values() == ["opened", last, last]
    assert Traced.at_close.pop() == "nothing"
    assert SPAN.get() == "nothing"


async def test_the_harness_works_in_a_coroutine() -> None:
    """It needs no event loop and minds none that runs."""
    harness = counting()
    harness.process("a", timestamp=1)
    harness.rescale(2)
    assert harness.process("a", timestamp=2)[0] == EmittedRecord(("a", 2), 2)
