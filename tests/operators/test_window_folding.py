"""Record by record and batch by batch, windows mean the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.elements import MAX_TIMESTAMP, RecordBatch, Watermark
from operators.functions import AggregateFunction
from operators.output_tag import OutputTag
from operators.stream_operator import BATCH_RECORDS_MAX, StreamOperator
from operators.triggers import Trigger
from operators.window_contents import (
    AggregateContents,
    CountContents,
    ListContents,
    ReduceContents,
    WindowContents,
    WindowCount,
)
from operators.window_factory import window_operator
from operators.window_folding import FoldingWindowOperator
from operators.window_functions import ProcessWindowFunction, process_callable
from operators.window_grid import TimeWindow
from operators.window_operator import WindowOperator
from operators.windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from statebackends.descriptors import ValueStateDescriptor
from tests.operators.fakes import Driver
from tests.operators.window_model import SameTrigger, WindowModel

LATE = OutputTag[Any]("late")
KEYS = ["cellar", "roof", "attic", "roof", "hall"]


class CollectingContents(AggregateContents):
    """Values in order as a tuple, so that every fold of a wrong order shows."""

    def __init__(self) -> None:
        super().__init__(AggregateFunction.of(create=tuple, add=lambda value, acc: (*acc, value)))

    def results(self, window: Any, keys: list[Hashable], contents: Iterable[Any]) -> list[object]:
        return [(key, window.start, values) for key, values in zip(keys, contents, strict=True)]


class ListingContents(ListContents):
    """Lists with key and window, without a window function."""

    def results(self, window: Any, keys: list[Hashable], contents: Iterable[Any]) -> list[object]:
        return [
            (key, window.start, tuple(values)) for key, values in zip(keys, contents, strict=True)
        ]

    def detached(self, result: object, contents: list[object]) -> object:
        return result


def listed(key: Hashable, context: Any, elements: Iterable[object]) -> Iterator[object]:
    yield key, context.window().start, tuple(elements)


KINDS: dict[str, Callable[[], tuple[WindowContents[Any], Any]]] = {
    "accumulator": lambda: (CollectingContents(), None),
    "list": lambda: (ListingContents(), None),
    "list with function": lambda: (ListContents(), process_callable(listed)),
}

records = st.tuples(st.sampled_from(["a", "b", 1, True, 1.0]), st.integers(-15, 30))
steps = st.lists(
    st.one_of(
        st.lists(records, min_size=1, max_size=12),
        st.integers(-17, 32),
        st.just("restart"),
    ),
    max_size=12,
)
grids = st.one_of(
    st.tuples(st.integers(1, 20), st.none(), st.integers(-3, 3)),
    st.tuples(st.integers(1, 20), st.integers(4, 25), st.integers(-3, 3)),
    st.tuples(st.integers(1, 4), st.integers(5, 9), st.integers(-3, 3)),
).filter(lambda grid: abs(grid[2]) < (grid[1] or grid[0]))


def assigner_of(grid: tuple[int, int | None, int]) -> Any:
    size, slide, offset = grid
    if slide is None:
        return TumblingEventTimeWindows.of(size, offset)
    return SlidingEventTimeWindows.of(size, slide, offset)


def grouped(outputs: Iterable[Any]) -> list[Any]:
    """Neighbours of equal timestamp in any order: timers of one time have none."""
    main = [one for one in outputs if len(one) == 2]
    runs = [sorted(map(repr, run)) for _, run in groupby(main, key=lambda one: one[1])]
    return [runs, [one for one in outputs if len(one) == 3]]


def modelled(model: WindowModel, key: Hashable, value: object, timestamp: int) -> list[Any]:
    return model.record(1 if key == 1 else key, value, timestamp)


@settings(max_examples=250, deadline=None)
@given(
    grid=grids,
    lateness=st.sampled_from([0, 1, 5, 30, MAX_TIMESTAMP]),
    kind=st.sampled_from(sorted(KINDS)),
    trigger=st.sampled_from([None, SameTrigger()]),
    steps=steps,
    data=st.data(),
)
def test_both_ways_give_what_the_model_gives_whatever_the_batches(
    grid: tuple[int, int | None, int],
    lateness: int,
    kind: str,
    trigger: Trigger[Any, Any] | None,
    steps: list[Any],
    data: st.DataObject,
) -> None:
    """Random records cut at random places, watermarks and restarts: outputs and lateness agree."""
    contents, function = KINDS[kind]()
    factory = window_operator(
        assigner_of(grid),
        contents,
        function,
        trigger=trigger,
        allowed_lateness=lateness,
        late_tag=LATE,
    )
    assert isinstance(factory(), FoldingWindowOperator) is (trigger is None)
    driver = Driver(factory())
    model = WindowModel(grid[0], grid[1] or grid[0], grid[2], lateness)
    number = 0
    for step in [*steps, MAX_TIMESTAMP]:
        if step == "restart":
            driver = driver.restarted(factory())
            model.restart()
        elif isinstance(step, int):
            # Operators never see a watermark that falls.
            if step >= model.watermark:
                assert grouped(driver.watermark(step)) == grouped(model.advance(step))
        else:
            cut = data.draw(st.integers(0, len(step)))
            expected: list[Any] = []
            got: list[Any] = []
            for part in (step[:cut], step[cut:]):
                values = list(range(number, number + len(part)))
                number += len(part)
                for value, (key, timestamp) in zip(values, part, strict=True):
                    expected += modelled(model, key, value, timestamp)
                if part:
                    keys, times = zip(*part, strict=True)
                    got += driver.records(values, times, keys)
            assert grouped(got) == grouped(expected)


@settings(max_examples=60, deadline=None)
@given(grid=grids, steps=st.lists(st.one_of(st.lists(records, min_size=1), st.integers(-17, 32))))
def test_counting_a_batch_counts_its_records(
    grid: tuple[int, int | None, int], steps: list[Any]
) -> None:
    """The built-in count equals the length of the model's contents, firing by firing."""
    driver = Driver(window_operator(assigner_of(grid), CountContents(), late_tag=LATE)())
    model = WindowModel(grid[0], grid[1] or grid[0], grid[2], 0)

    def counted(outputs: list[Any]) -> list[Any]:
        return [
            (WindowCount(one[0][0], one[0][1], one[0][1] + grid[0], len(one[0][2])), one[1])
            for one in outputs
            if len(one) == 2
        ]

    for step in [*steps, MAX_TIMESTAMP]:
        if isinstance(step, int):
            if step >= model.watermark:
                assert grouped(driver.watermark(step)) == grouped(counted(model.advance(step)))
        else:
            keys, times = zip(*step, strict=True)
            for key, timestamp in step:
                modelled(model, key, None, timestamp)
            assert all(len(one) == 3 for one in driver.records(keys, times, keys))


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("contents", [CountContents, ListingContents, CollectingContents])
def test_results_of_a_window_come_in_the_order_of_its_keys_whatever_the_batches(
    contents: Callable[[], WindowContents[Any]], most: int
) -> None:
    """How a batch was cut cannot be observed."""
    driver = Driver(window_operator(TumblingEventTimeWindows.of(10), contents())())
    for keys in (KEYS[start : start + most] for start in range(0, len(KEYS), most)):
        driver.records(keys, [1] * len(keys), keys)
    assert [value[0] for value, _ in driver.watermark(9)] == ["cellar", "roof", "attic", "hall"]


@pytest.mark.parametrize("lateness", [0, 5])
def test_nothing_is_left_behind_once_windows_are_removed(lateness: int) -> None:
    """State and timers are empty after the last removal."""
    operator = window_operator(
        SlidingEventTimeWindows.of(10, 3), CountContents(), allowed_lateness=lateness
    )()
    driver = Driver(operator)
    driver.records("abca", [0, 5, 9, 30], "abca")
    assert driver.context.keyed_state.entry_count() > 0
    driver.watermark(9)
    driver.records("b", [8], "b")
    driver.watermark(60)
    assert driver.context.keyed_state.entry_count() == 0
    assert len(driver.context.keyed_state.timer_queue("window-timers")) == 0


def test_results_come_in_full_batches_and_no_larger() -> None:
    """5,000 keys due at once leave in batches of the largest size, one by one as they are taken."""
    driver = Driver(window_operator(TumblingEventTimeWindows.of(10), CountContents())())
    keys = [f"k{number}" for number in range(5_000)]
    driver.records(keys, [1] * 5_000, keys)
    assert len(driver.watermark(9)) == 5_000
    assert driver.batch_sizes == [BATCH_RECORDS_MAX] * 4 + [5_000 - 4 * BATCH_RECORDS_MAX]


def test_state_goes_as_results_are_taken() -> None:
    """Firing is resumable: after one batch the other keys are still in the state."""
    driver = Driver(window_operator(TumblingEventTimeWindows.of(10), CountContents())())
    keys = [f"k{number}" for number in range(3_000)]
    driver.records(keys, [1] * 3_000, keys)
    work = iter(driver.operator.process_watermark(Watermark(9)))
    first = next(work)
    assert isinstance(first, RecordBatch)
    assert driver.context.keyed_state.entry_count() == 3_000 - len(first)
    driver.collect(work)
    assert driver.context.keyed_state.entry_count() == 0


def test_removal_without_output_offers_pauses() -> None:
    """Windows past their lateness go in pieces, with empty batches between them."""
    factory = window_operator(TumblingEventTimeWindows.of(10), CountContents(), allowed_lateness=5)
    driver = Driver(factory())
    keys = [f"k{number}" for number in range(10_000)]
    driver.records(keys, [1] * 10_000, keys)
    driver.watermark(9)
    assert driver.pauses == 0
    assert driver.watermark(14) == []
    assert driver.pauses >= 4


def test_a_batch_in_many_windows_offers_pauses() -> None:
    """Between its windows; all of them are filled in the end."""
    factory = window_operator(SlidingEventTimeWindows.of(1_000, 10), CountContents())
    driver = Driver(factory())
    keys = [f"k{number % 7}" for number in range(500)]
    assert driver.records(keys, list(range(500)), keys) == []
    assert driver.pauses >= 5
    assert sum(one[0].count for one in driver.watermark(MAX_TIMESTAMP)) == 500 * 100


def test_many_windows_of_few_keys_leave_in_small_batches() -> None:
    """A window costs more than a key: the pieces are counted by both."""
    driver = Driver(window_operator(TumblingEventTimeWindows.of(1), CountContents())())
    for start in range(0, 3_000, 500):
        driver.records(["k"] * 500, list(range(start, start + 500)), ["k"] * 500)
    driver.batch_sizes.clear()
    assert [one[1] for one in driver.watermark(5_000)] == list(range(3_000))
    assert max(driver.batch_sizes) <= BATCH_RECORDS_MAX / 4


def test_a_record_that_fires_many_windows_leaves_in_full_batches() -> None:
    """One late record fires 3,000 windows at once; no batch is larger than the largest size."""
    factory = window_operator(
        SlidingEventTimeWindows.of(3_000, 1), CountContents(), allowed_lateness=10_000
    )
    driver = Driver(factory())
    driver.watermark(5_000)
    assert len(driver.records(["k"], [1_000], ["k"])) == 3_000
    assert max(driver.batch_sizes) == BATCH_RECORDS_MAX


def test_equal_keys_share_a_window_under_one_representative() -> None:
    """1, True and 1.0 are one key."""
    driver = Driver(window_operator(TumblingEventTimeWindows.of(10), CountContents())())
    driver.records("xyz", [1, 2, 3], [True, 1.0, 1])
    [(count, _)] = driver.watermark(9)
    assert (count, type(count.key)) == ((1, 0, 10, 3), int)


@pytest.mark.parametrize("trigger", [None, SameTrigger()])
@pytest.mark.parametrize("kind", ["accumulator", "list", "list with function", "reduce", "count"])
def test_a_key_unequal_to_its_representative_keeps_its_contents(
    trigger: Trigger[Any, Any] | None, kind: str
) -> None:
    """A local time that comes twice in a year equals nothing in Python, its own instant neither."""
    twice = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    if kind == "reduce":
        contents, function = ReduceContents(lambda first, second: first + second), None
    elif kind == "count":
        contents, function = CountContents(), None
    else:
        contents, function = KINDS[kind]()
    factory = window_operator(TumblingEventTimeWindows.of(10), contents, function, trigger=trigger)
    driver = Driver(factory())
    driver.records([1], [1], [twice])
    driver.records([2, 4], [2, 3], [twice, twice])
    [(result, _)] = driver.watermark(9)
    expected = {"reduce": 7, "count": 3}.get(kind, (1, 2, 4))
    assert (result if kind == "reduce" else result[-1]) == expected


def test_a_mutable_result_is_not_changed_by_later_elements() -> None:
    """What was put out while the window stays is a copy of the accumulator."""

    def append(value: object, acc: list[object]) -> list[object]:
        acc.append(value)
        return acc

    for give in (lambda acc: acc, lambda acc: ("result", acc)):
        contents = AggregateContents(AggregateFunction.of(create=list, add=append, get_result=give))
        factory = window_operator(TumblingEventTimeWindows.of(10), contents, allowed_lateness=100)
        driver = Driver(factory())
        driver.records([1], [1], "a")
        first = driver.watermark(9)
        second = driver.records([2], [1], "a")
        driver.records([3], [1], "a")
        assert [one[0] for one in first + second] == [give([1]), give([1, 2])]


class Firings(ProcessWindowFunction[Any, Any, Any, TimeWindow]):
    """Counts firings per window and per key."""

    PER_WINDOW = ValueStateDescriptor("fired in window", int)
    PER_KEY = ValueStateDescriptor("fired for key", int)

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        window = context.window_state().get_state(self.PER_WINDOW)
        total = context.global_state().get_state(self.PER_KEY)
        window.update((window.value() or 0) + 1)
        total.update((total.value() or 0) + 1)
        return [(key, window.value(), total.value(), context.current_watermark())]

    def clear(self, context: Any) -> None:
        context.window_state().get_state(self.PER_WINDOW).clear()


@pytest.mark.parametrize("trigger", [None, SameTrigger()])
def test_state_of_a_window_goes_with_it_and_state_of_a_key_stays(
    trigger: Trigger[Any, Any] | None,
) -> None:
    """`clear` is called with the window at hand for every key."""
    factory = window_operator(
        TumblingEventTimeWindows.of(10),
        ReduceContents(lambda first, second: first + second),
        Firings(),
        trigger=trigger,
        allowed_lateness=5,
    )
    driver = Driver(factory())
    driver.records([1, 2], [1, 11], "aa")
    assert driver.watermark(9) == [(("a", 1, 1, 9), 9)]
    assert driver.records([3], [2], "a") == [(("a", 2, 2, 9), 9)]
    assert driver.watermark(30) == [(("a", 1, 3, 30), 19)]
    assert driver.context.keyed_state.entry_count() == 1


def test_functions_are_opened_and_closed_once() -> None:
    """Each subtask has copies of its own."""
    calls: list[str] = []

    class Opened(ProcessWindowFunction[Any, Any, Any, TimeWindow]):
        def open(self, runtime_context: Any) -> None:
            calls.append(f"open {runtime_context.get_index_of_this_subtask()}")

        def close(self) -> None:
            calls.append("close")

        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            return []

    function = Opened()
    factory = window_operator(TumblingEventTimeWindows.of(10), ListContents(), function)
    operator: StreamOperator = factory()
    assert isinstance(operator, WindowOperator)
    assert operator._function is not function
    Driver(operator)
    operator.close()
    operator.close()
    assert calls == ["open 0", "close"]
