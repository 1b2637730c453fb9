"""The window operator record by record: triggers, processing time, functions, late records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import count
from typing import Any

import pytest

from operators.elements import MAX_TIMESTAMP, RecordBatch, Watermark
from operators.output_tag import OutputTag
from operators.stream_operator import BATCH_RECORDS_MAX
from operators.triggers import (
    EventTimeTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
    Window,
)
from operators.window_contents import CountContents, ListContents, ReduceContents
from operators.window_factory import window_operator
from operators.window_functions import ProcessWindowFunction, apply_callable, process_callable
from operators.windows import (
    GlobalWindow,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from statebackends.descriptors import ReducingStateDescriptor
from tests.operators.fakes import Driver

LATE = OutputTag[Any]("late")
TEN = TumblingEventTimeWindows.of(10)


def listed(key: object, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
    yield key, context.window().start, list(elements)


def lists(assigner: WindowAssigner[Any, Any], **settings: Any) -> Driver:
    return Driver(window_operator(assigner, ListContents(), process_callable(listed), **settings)())


class EverySecond(Trigger[Any, Window]):
    """Fires at each second element, and never at the end of the window."""

    COUNT = ReducingStateDescriptor("elements", lambda a, b: a + b, int)

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        counter: Any = ctx.get_partitioned_state(self.COUNT)
        counter.add(1)
        if counter.get() < 2:
            return TriggerResult.CONTINUE
        counter.clear()
        return TriggerResult.FIRE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self.COUNT).clear()


class EachFiveMs(EverySecond):
    """Fires each 5 ms of event time from the first element on, by timers of its own."""

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_event_time_timer(timestamp + 5)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if time >= window.max_timestamp():
            return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE
        ctx.register_event_time_timer(time + 5)
        return TriggerResult.FIRE


# -- late records -----------------------------------------------------------------------------


def test_a_record_within_the_lateness_fires_again_and_a_later_one_is_late() -> None:
    """The late one goes to the side output and is counted."""
    driver = Driver(window_operator(TEN, CountContents(), allowed_lateness=5, late_tag=LATE)())
    outputs = []
    for second, watermark in ((1, 0), (2, 1), (11, 10), (4, 10), (16, 15), (5, 15)):
        outputs += driver.records([("k", second)], [second])
        outputs += driver.watermark(watermark)
    assert [(one[0].start, one[0].count) for one in outputs if len(one) == 2] == [(0, 2), (0, 3)]
    assert [one for one in outputs if len(one) == 3] == [("late", ("k", 5), 5)]
    assert driver.operator.context.metrics.counter("num_late_records_dropped").count == 1
    assert [one[0].count for one in driver.watermark(MAX_TIMESTAMP)] == [2]


@pytest.mark.parametrize("trigger", [None, PurgingTrigger.of(EventTimeTrigger())])
def test_late_records_are_counted_without_a_side_output(trigger: Any) -> None:
    """They come out nowhere."""
    driver = Driver(window_operator(TEN, CountContents(), trigger=trigger)())
    driver.watermark(9)
    assert driver.records([("k", 1), ("k", 2), ("k", 3)], [5, 9, 10]) == []
    assert driver.operator.context.metrics.counter("num_late_records_dropped").count == 2


def test_a_purging_trigger_fires_new_elements_only() -> None:
    """What was fired is gone; a late element fires alone."""
    trigger = PurgingTrigger.of(EventTimeTrigger.create())
    driver = lists(TumblingEventTimeWindows.of(2_000), trigger=trigger, allowed_lateness=500)
    driver.records([("k", 500), ("k", 1300)], [500, 1300])
    assert driver.watermark(2300) == [(("k", 0, [("k", 500), ("k", 1300)]), 1999)]
    assert driver.records([("k", 1997)], [1997]) == [(("k", 0, [("k", 1997)]), 1999)]
    driver.watermark(6000)
    assert driver.records([("k", 1998)], [1998]) == []
    assert driver.context.keyed_state.entry_count() == 0
    assert len(driver.context.keyed_state.timer_queue("window-timers")) == 0


def test_endless_lateness_keeps_windows_for_good() -> None:
    """No timer removes them; after the last watermark everything is late all the same."""
    driver = Driver(
        window_operator(TEN, CountContents(), allowed_lateness=MAX_TIMESTAMP, late_tag=LATE)()
    )
    driver.records([("k", 1)], [1])
    driver.watermark(1_000_000)
    assert [one[0].count for one in driver.records([("k", 1)], [1])] == [2]
    driver.watermark(MAX_TIMESTAMP)
    assert driver.records([("k", 4)], [1]) == [("late", ("k", 4), 1)]


def test_a_negative_lateness_is_refused() -> None:
    """At the line that builds the operator."""
    with pytest.raises(ValueError, match="allowed_lateness"):
        window_operator(TEN, CountContents(), allowed_lateness=-1)


# -- triggers ---------------------------------------------------------------------------------


def test_a_custom_trigger_replaces_the_end_of_the_window() -> None:
    """It fires by its own count, per key and window; at the end the contents just go."""
    driver = lists(TEN, trigger=EverySecond())
    assert driver.records([("a", 1), ("b", 2), ("a", 3)], [1, 1, 2]) == [
        (("a", 0, [("a", 1), ("a", 3)]), 9)
    ]
    assert driver.watermark(20) == []
    assert driver.context.keyed_state.entry_count() == 0
    assert len(driver.context.keyed_state.timer_queue("window-timers")) == 0


def test_the_state_of_a_trigger_survives_a_restart() -> None:
    """The second element fires although the first came before."""
    factory = window_operator(TEN, CountContents(), trigger=EverySecond())
    driver = Driver(factory())
    driver.records([("a", 1)], [1])
    restarted = driver.restarted(factory())
    assert [one[0].count for one in restarted.records([("a", 2)], [2])] == [2]


def test_a_trigger_that_registers_timers_fires_once_per_timer() -> None:
    """Also those that it registers while it fires, in the order of time."""
    driver = lists(TumblingEventTimeWindows.of(20), trigger=EachFiveMs())
    driver.records([("a", 1)], [1])
    # At 6, 11 and 16, and at the end of the window.
    assert [one[1] for one in driver.watermark(30)] == [19] * 4


def test_the_event_time_trigger_ignores_the_clock_and_the_other_way_round() -> None:
    """Each kind of time has its own timers."""
    by_clock = lists(TEN, trigger=ProcessingTimeTrigger.create())
    by_clock.records([("a", 1)], [1])
    assert by_clock.processing_time(8) == []
    assert by_clock.processing_time(9) == [(("a", 0, [("a", 1)]), 9)]
    assert by_clock.watermark(9) == []
    assert by_clock.context.keyed_state.entry_count() == 0


def test_a_trigger_that_cannot_merge_says_so() -> None:
    """The default of the base class; those of time and purging can."""
    assert not EverySecond().can_merge()
    assert PurgingTrigger.of(ProcessingTimeTrigger()).can_merge()
    with pytest.raises(NotImplementedError, match="EverySecond"):
        EverySecond().on_merge(GlobalWindow(), None)  # type: ignore[arg-type]  # not used


# -- processing time --------------------------------------------------------------------------


def test_processing_time_windows_fire_by_the_clock_without_timestamps() -> None:
    """The results carry the end of the window all the same."""
    driver = lists(TumblingProcessingTimeWindows.of(10, 4))
    driver.processing_time(3)
    driver.records([("a", 1)])
    assert driver.processing_time(4) == [(("a", -6, [("a", 1)]), 3)]
    driver.records([("a", 2)])
    assert driver.watermark(MAX_TIMESTAMP) == []
    assert driver.processing_time(14) == [(("a", 4, [("a", 2)]), 13)]
    assert driver.context.keyed_state.entry_count() == 0


def test_sliding_processing_time_windows_fire_each_slide() -> None:
    """A record is in size / slide of them."""
    driver = lists(SlidingProcessingTimeWindows.of(10, 5))
    driver.processing_time(6)
    driver.records([("a", 1)])
    assert [one[1] for one in driver.processing_time(30)] == [9, 14]


def test_restored_processing_time_windows_fire_when_the_clock_says_so() -> None:
    """The wake-up is armed again at the start."""
    factory = window_operator(TumblingProcessingTimeWindows.of(10), CountContents())
    driver = Driver(factory())
    driver.records([("a", 1), ("b", 2)])
    driver = driver.restarted(factory())
    driver.records([("a", 3)])
    assert sorted(driver.processing_time(25)) == [(("a", 0, 10, 2), 9), (("b", 0, 10, 1), 9)]


# -- assigners and functions ------------------------------------------------------------------


class Everything(WindowAssigner[Any, GlobalWindow]):
    """One window for all, by no time."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: object = None) -> Trigger[Any, Window]:
        return EverySecond()

    def is_event_time(self) -> bool:
        return False


def test_an_assigner_of_ones_own_needs_no_timestamps() -> None:
    """A window without end is never removed by a timer."""
    contents = ReduceContents(lambda first, second: (first[0], first[1] + second[1]))
    driver = Driver(window_operator(Everything(), contents)())
    outputs = driver.records([("a", 1), ("a", 2), ("b", 9), ("a", 3), ("a", 4)])
    assert outputs == [(("a", 3), MAX_TIMESTAMP), (("a", 10), MAX_TIMESTAMP)]
    assert len(driver.context.keyed_state.timer_queue("window-timers")) == 0


def test_sliding_windows_with_gaps_drop_what_lies_between() -> None:
    """It counts as late only once the watermark has passed it."""
    driver = lists(SlidingEventTimeWindows.of(2, 10), late_tag=LATE)
    assert driver.records([("a", 1), ("a", 5)], [1, 5]) == []
    assert driver.watermark(5) == [(("a", 0, [("a", 1)]), 1)]
    assert driver.records([("a", 5), ("a", 6)], [5, 6]) == [("late", ("a", 5), 5)]


@pytest.mark.parametrize("trigger", [None, PurgingTrigger.of(EventTimeTrigger())])
def test_a_function_sends_to_side_outputs(trigger: Any) -> None:
    """A pair that begins with a tag leaves the main output."""
    tag = OutputTag[int]("sizes")

    def process(key: object, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield key
        yield tag, len(list(elements))

    driver = Driver(
        window_operator(TEN, ListContents(), process_callable(process), trigger=trigger)()
    )
    driver.records([("a", 1), ("a", 2)], [1, 2])
    assert driver.watermark(9) == [("a", 9), ("sizes", 2, 9)]


@pytest.mark.parametrize("trigger", [None, PurgingTrigger.of(EventTimeTrigger())])
@pytest.mark.parametrize("returned", ["text", ("a", 1), {"a": 1}, 7])
def test_what_is_no_iterable_of_outputs_is_refused_with_a_hint(
    trigger: Any, returned: object
) -> None:
    """A returned str would come out letter by letter."""
    function = apply_callable(lambda key, window, inputs: returned)  # type: ignore[arg-type,return-value]  # wrong on purpose
    driver = Driver(window_operator(TEN, ListContents(), function, trigger=trigger)())
    driver.records([("a", 1)], [1])
    with pytest.raises(TypeError, match="yield"):
        driver.watermark(9)


@pytest.mark.parametrize("trigger", [None, PurgingTrigger.of(EventTimeTrigger())])
def test_an_endless_function_is_handed_on_in_full_batches(trigger: Any) -> None:
    """Between them the operator says that it is inside a call."""
    function = process_callable(lambda key, context, elements: count())
    driver = Driver(window_operator(TEN, ListContents(), function, trigger=trigger)())
    driver.records([("a", 1)], [1])
    work = iter(driver.operator.process_watermark(Watermark(9)))
    for _ in range(3):
        element = next(work)
        assert isinstance(element, RecordBatch)
        assert len(element) == BATCH_RECORDS_MAX
        assert driver.operator.in_record


def test_an_unkeyed_batch_is_refused() -> None:
    """The message says that windows need a keyed stream."""
    operator = Driver(window_operator(TEN, ListContents(), trigger=EverySecond())()).operator
    with pytest.raises(ValueError, match="keyed"):
        list(operator.process_batch(RecordBatch([1], [1])))


@pytest.mark.parametrize(
    ("position", "given"), [("assigner", 10), ("trigger", "count"), ("function", len)]
)
def test_arguments_of_a_wrong_kind_are_refused_when_the_job_is_built(
    position: str, given: Any
) -> None:
    """The message names what is expected."""
    arguments: dict[str, Any] = {"assigner": TEN, "contents": ListContents(), position: given}
    with pytest.raises(TypeError, match=r"Window|Trigger"):
        window_operator(**arguments)


def test_the_function_sees_time_and_window() -> None:
    """Watermark is the new one while it advances, processing time is the clock's."""

    class Seen(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            now = context.current_processing_time()
            return [(context.window(), context.current_watermark(), now)]

    driver = Driver(window_operator(TEN, ListContents(), Seen())())
    driver.processing_time(77)
    driver.records([("a", 1)], [1])
    assert driver.watermark(12) == [(((0, 10), 12, 77), 9)]
