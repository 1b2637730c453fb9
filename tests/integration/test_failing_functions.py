"""Whatever a user function does wrong comes out as one sentence and the user's own lines."""

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from operators.datastream import DataStream
from runtime import (
    JobExecutionError,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
    Trigger,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    WatermarkGenerator,
    WatermarkStrategy,
)
from runtime.failure_report import format_failure

Numbers = DataStream[int]


class NeedsArguments(Exception):
    """An exception that cannot be made from its message."""

    def __init__(self, code: int, *, hint: str) -> None:
        self.code = code
        self.hint = hint


class Speechless(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Unprintable:
    """A record that cannot be shown."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        raise ValueError("no words")


class FailingWatermarks(WatermarkGenerator[int]):
    """A generator that cannot say how far time has come."""

    def on_event(self, event: int, event_timestamp: int, output: object) -> None:
        """Fails."""
        raise RuntimeError("no idea of time")

    def on_periodic_emit(self, output: object) -> None:
        """Never comes to it."""


def report(build: Callable[[Numbers], DataStream[Any]]) -> tuple[str, str]:
    """The first line of the report of a job over the numbers 0 to 3 that fails, and the rest."""
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env.from_sequence(0, 3)).name("fails").print()
    with pytest.raises(JobExecutionError) as raised:
        env.execute("broken")
    first, _, rest = format_failure(raised.value).partition("\n")
    return first, rest.strip()


def call(function: Callable[[int], object]) -> Callable[[Numbers], DataStream[Any]]:
    """A job that maps with the function."""
    return lambda numbers: numbers.map(function)


def raise_(error: BaseException) -> Callable[[int], object]:
    """A function that raises."""

    def function(_: int) -> object:
        raise error

    return function


def recurse(number: int) -> int:
    """Never ends."""
    return recurse(number) + 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raise_(KeyError("ts")), "KeyError('ts')"),
        (raise_(NeedsArguments(3, hint="x")), "NeedsArguments(3)"),
        (raise_(Speechless()), "Speechless(its message cannot be shown: str() raised ValueError)"),
        (raise_(SystemExit(7)), "SystemExit(7)"),
        (raise_(ValueError("x" * 10_000_000)), "x..."),
        (recurse, "RecursionError(maximum recursion depth exceeded"),
    ],
    ids=["KeyError", "arguments", "speechless", "exit", "huge", "recursion"],
)
def test_a_raising_function_is_named_with_its_record_and_error(
    function: Callable[[int], object], message: str
) -> None:
    """No exception is too strange to be reported, none ends the process or floods the terminal."""
    first, rest = report(call(function))
    assert first.startswith("JobExecutionError: job 'broken' failed in operator 'fails' (uid ")
    assert "record from Sequence Source[0], record 0: " in first
    assert message in first
    assert len(first) < 1_000
    assert rest.startswith(f'Traceback (most recent call last):\n  File "{__file__}"')


def test_a_record_that_cannot_be_shown_does_not_hide_the_error() -> None:
    """What its `repr` raised is said in its place."""
    first, _ = report(lambda numbers: numbers.map(Unprintable).map(raise_(KeyError("ts"))))
    assert "KeyError('ts')" in first


def test_a_huge_record_is_shortened() -> None:
    """The sentence stays readable."""
    huge = StreamExecutionEnvironment.get_execution_environment()
    huge.from_collection(["x" * 1_000_000]).map(int).print()
    with pytest.raises(JobExecutionError) as raised:
        huge.execute()
    assert len(str(raised.value)) < 1_000


async def later(number: int) -> int:
    """Gives nothing but a coroutine to who calls it plainly."""
    return number


def give_later(number: int) -> object:
    """Looks like a plain function, and cannot be told from one before it is called."""
    return later(number)


def text_of(_: int) -> str:
    """Hardly meant as an iterable of letters."""
    return "text"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.map(give_later), "map returned a coroutine"),
        (lambda s: s.filter(give_later), "filter returned a coroutine"),
        (lambda s: s.map(int).filter(give_later), "returned a coroutine"),
        (lambda s: s.flat_map(give_later), "flat_map returned a coroutine"),
        (lambda s: s.flat_map(text_of), "not str: write `yield 'text'`, or return a list"),
        (lambda s: s.flat_map(lambda n: n), "not int: write `yield 0`, or return a list"),
        (lambda s: s.flat_map(lambda n: {"n": n}), "not dict: write `yield {'n': 0}`"),
        (lambda s: s.key_by(lambda n: [n]).reduce(max), "a key of type list has no stable form"),
        (lambda s: s.key_by(lambda n: {n}).reduce(max), "a key of type set has no stable form"),
        (lambda s: s.key_by(lambda n: object()).reduce(max), "type object has no stable form"),
    ],
)
def test_a_wrong_result_is_refused_at_the_first_record_without_a_traceback(
    build: Callable[[Numbers], DataStream[Any]], message: str
) -> None:
    """The sentence says what came and what to give; no line of anybody's is to blame."""
    first, rest = report(build)
    assert "failed in operator 'fails'" in first
    assert message in first
    assert rest == ""


class GivesText(KeyedProcessFunction[int, int, str]):
    """Gives back what should have been yielded."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        """A str."""
        return "text"


class OutputsByContext(KeyedProcessFunction[int, int, str]):
    """Written as for Java."""

    def process_element(self, value: int, ctx: Any) -> None:
        """Yields nothing."""
        ctx.output(OutputTag("large"), value)


class FailsInTimer(KeyedProcessFunction[int, int, str]):
    """Fails long after its records."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        """Registers a timer."""
        ctx.timer_service().register_event_time_timer(1_000 + value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> list[str]:
        """Fails."""
        raise KeyError("timer")


def process(function: KeyedProcessFunction[int, int, str]) -> Callable[[Numbers], DataStream[Any]]:
    """A job that runs the function for one key."""
    return lambda numbers: numbers.key_by(lambda number: 0).process(function)


def test_where_the_runtime_refuses_the_function_is_named_with_its_place() -> None:
    """No line of a traceback leads there."""
    name = Path(__file__).name
    first, rest = report(process(GivesText()))
    assert f"function GivesText at {name}:" in first
    assert rest == ""
    first, _ = report(lambda numbers: numbers.flat_map(text_of))
    assert f"function text_of at {name}:" in first


def test_a_context_says_how_outputs_are_made() -> None:
    """Its Java namesake has methods for it."""
    first, rest = report(process(OutputsByContext()))
    assert "`yield tag, value` for a side output" in first
    assert "ctx.output" in rest


class StateByContext(KeyedProcessFunction[int, int, str]):
    """Looks for state where a call can see it."""

    def process_element(self, value: int, ctx: Any) -> None:
        """Yields nothing."""
        ctx.get_state(ValueStateDescriptor("seen"))


class StateByFunction(KeyedProcessFunction[int, int, str]):
    """Written as for Java."""

    def process_element(self, value: int, ctx: Any) -> None:
        """Yields nothing."""
        self.get_runtime_context()  # type: ignore[attr-defined]  # the mistake


@pytest.mark.parametrize("function", [StateByContext(), StateByFunction()])
def test_a_function_says_where_state_is_fetched(
    function: KeyedProcessFunction[int, int, str],
) -> None:
    """Neither the context nor the function has it."""
    first, _ = report(process(function))
    assert "fetch state in open(self, runtime_context) and keep it in an attribute" in first


def test_a_failing_timer_is_named_by_its_time() -> None:
    """Not by the watermark that made it fire."""
    first, _ = report(process(FailsInTimer()))
    assert "in the timer of 1000, on key 0: KeyError('timer')" in first


def test_a_field_by_name_needs_names() -> None:
    """A tuple has indices."""
    first, _ = report(lambda numbers: numbers.map(lambda n: (n, n)).key_by("user").reduce(max))
    assert "a tuple has no field 'user': name it by its index" in first


def test_a_side_output_that_nobody_reads_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Where another one is read: the tag is misspelt somewhere."""
    env = StreamExecutionEnvironment.get_execution_environment()

    class Sides(ProcessFunction[int, int]):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
            yield OutputTag("large"), value

    sides = env.from_sequence(0, 3_000).process(Sides()).name("sides")
    sides.get_side_output(OutputTag("lagre")).print()
    sides.print()
    env.execute("misspelt")
    told = [one.getMessage() for one in caplog.records if "nobody reads" in one.getMessage()]
    (text,) = told
    assert "operator 'sides' puts out records for side output 'large'" in text
    assert text.endswith("read are 'lagre'")


def stamped(timestamp: object) -> Callable[[Numbers], DataStream[Any]]:
    """A job whose records get the timestamp."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assigned = strategy.with_timestamp_assigner(lambda *_: timestamp)
    return lambda numbers: numbers.assign_timestamps_and_watermarks(assigned)


@pytest.mark.parametrize("timestamp", [1.5, None, True, "1", float("nan"), 2**70, -(2**62)])
def test_a_timestamp_that_is_none_is_refused_with_its_record(timestamp: object) -> None:
    """A float would lose milliseconds, a huge one would end event time for good."""
    first, rest = report(stamped(timestamp))
    assert "record from Sequence Source[0], record 0" in first
    assert "a record's timestamp must" in first
    assert repr(timestamp) in first
    assert rest == ""


def test_a_failing_watermark_generator_is_shown_by_its_own_lines() -> None:
    """With the record at which it failed."""
    strategy = WatermarkStrategy.for_generator(FailingWatermarks)
    assigned = strategy.with_timestamp_assigner(lambda number, _: number)
    first, rest = report(lambda numbers: numbers.assign_timestamps_and_watermarks(assigned))
    assert first.endswith("record 0: RuntimeError(no idea of time)")
    assert rest.splitlines()[1].endswith("in on_event")


class Lock:
    """A value that nothing can copy or keep."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __deepcopy__(self, memo: object) -> Generator[object]:
        raise TypeError("cannot copy a lock")


def test_a_value_of_state_that_cannot_be_copied_is_refused() -> None:
    """The state and the stream would share it."""
    first, _ = report(lambda numbers: numbers.map(Lock).key_by(lambda _: 1).reduce(lambda a, _: a))
    assert "TypeError: cannot copy a lock" in first
    assert "keep in state only what copy.deepcopy can copy" in first


@pytest.mark.parametrize(
    ("build", "message", "lines"),
    [
        (lambda s: s.map(str).map(ord).map(bytes.decode), "TypeError(descriptor 'decode'", 0),
        (lambda s: s.map(bytes.decode), "TypeError(descriptor 'decode'", 0),
        (lambda s: s.filter(len), "TypeError(object of type 'int' has no len())", 0),
        (lambda s: s.map(lambda n: {"n": n}).key_by("m").reduce(max), "KeyError('m')", 0),
        (lambda s: s.map(lambda n: "{").map(json.loads), "JSONDecodeError(Expecting prop", 8),
    ],
    ids=["fused", "map", "filter", "field", "json"],
)
def test_a_failing_builtin_is_reported_without_lines_of_the_runtime(
    build: Callable[[Numbers], DataStream[Any]], message: str, lines: int
) -> None:
    """It has no lines of its own; those of a module of Python are shown."""
    first, rest = report(build)
    assert message in first
    assert len(rest.splitlines()) >= lines
    assert bool(rest) == bool(lines)
    assert "/runtime/" not in rest
    assert "/operators/" not in rest


class WordsTrigger(Trigger[Any, Any]):
    """A trigger that has not read what to return."""

    def on_element(self, element: object, timestamp: int, window: object, ctx: object) -> Any:
        """Not a TriggerResult."""
        return "fire"

    def on_event_time(self, time: int, window: object, ctx: object) -> Any:
        """Never called."""

    def on_processing_time(self, time: int, window: object, ctx: object) -> Any:
        """Never called."""

    def clear(self, window: object, ctx: object) -> None:
        """Nothing to clear."""


def test_a_trigger_that_returns_no_result_is_refused() -> None:
    """Naming what it returned."""
    windows = TumblingEventTimeWindows.of(1_000)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assigned = strategy.with_timestamp_assigner(lambda number, _: number)

    def build(numbers: Numbers) -> DataStream[Any]:
        timed = numbers.assign_timestamps_and_watermarks(assigned).key_by(lambda _: 1)
        return timed.window(windows).trigger(WordsTrigger()).count()

    first, rest = report(build)
    assert first.endswith("WrongResultError(a trigger must return a TriggerResult, not 'fire')")
    assert rest == ""
