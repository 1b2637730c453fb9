"""Keyed process functions: keys, state, timers, outputs."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from operators.elements import MAX_TIMESTAMP, RecordBatch, Watermark
from operators.keyed import TIMERS_PER_PAUSE, KeyedProcessOperator
from operators.output_tag import OutputTag
from operators.process_functions import KeyedProcessFunction
from operators.runtime_context import RuntimeContext
from operators.stream_operator import BATCH_RECORDS_MAX
from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from statebackends.errors import UnstableKeyError
from tests.operators.fakes import Driver, FakeContext
from tests.operators.saved_state import restarted

ALERT: OutputTag[str] = OutputTag("alert")
Context = KeyedProcessFunction.Context
OnTimerContext = KeyedProcessFunction.OnTimerContext


class Counting(KeyedProcessFunction[str, Any, Any]):
    """Counts per key; the value's number registers an event-time timer at that time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", int))

    def process_element(self, value: Any, ctx: Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if value[1] is not None:
            ctx.timer_service().register_event_time_timer(value[1])
        yield ctx.get_current_key(), count, ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: OnTimerContext) -> Iterator[Any]:
        yield (
            ctx.get_current_key(),
            self.count.value(),
            ctx.timestamp(),
            ctx.time_domain().name,
            ctx.timer_service().current_watermark(),
        )


def test_state_is_that_of_the_record_s_key() -> None:
    """Outputs carry the record's timestamp."""
    driver = Driver(KeyedProcessOperator(Counting()))
    outputs = driver.records([("a", None), ("b", None), ("a", None)], [1, 2, None])
    assert outputs == [(("a", 1, 1), 1), (("b", 1, 2), 2), (("a", 2, None), None)]
    assert driver.records([("b", None)]) == [(("b", 2, None), None)]


def test_event_timers_see_the_new_watermark_and_come_before_it() -> None:
    """Their outputs carry their own timestamp, and state is that of their key."""
    driver = Driver(KeyedProcessOperator(Counting()))
    driver.records([("a", 30), ("b", 10), ("c", 20), ("a", 15)], [1, 1, 1, 1])
    assert driver.watermark(29) == [
        (("b", 1, 10, "EVENT_TIME", 29), 10),
        (("a", 2, 15, "EVENT_TIME", 29), 15),
        (("c", 1, 20, "EVENT_TIME", 29), 20),
    ]
    assert driver.watermark(MAX_TIMESTAMP) == [(("a", 2, 30, "EVENT_TIME", MAX_TIMESTAMP), 30)]


def test_timers_and_state_survive_a_restart() -> None:
    """The watermark starts again from the lowest."""
    driver = Driver(KeyedProcessOperator(Counting()))
    driver.records([("a", 30), ("b", 10)])
    driver.watermark(10)
    context = FakeContext(keyed_state=restarted(driver.context.keyed_state))
    again = Driver(KeyedProcessOperator(Counting()), context)
    assert again.watermark(40) == [(("a", 1, 30, "EVENT_TIME", 40), 30)]


class Timers(KeyedProcessFunction[str, Any, Any]):
    """Does with the timer service what it is told, in both methods."""

    def __init__(self, element: Callable[..., Any], timer: Callable[..., Any]) -> None:
        self.element = element
        self.timer = timer

    def process_element(self, value: Any, ctx: Context) -> Iterable[Any] | None:
        result: Iterable[Any] | None = self.element(value, ctx.timer_service())
        return result

    def on_timer(self, timestamp: int, ctx: OnTimerContext) -> Iterable[Any]:
        self.timer(timestamp, ctx.timer_service())
        return [(ctx.get_current_key(), timestamp, ctx.time_domain().name)]


def test_a_timer_registered_while_firing_joins_the_round_if_it_is_due() -> None:
    """A periodic timer fires once per missed period, then goes on."""
    operator = KeyedProcessOperator(
        Timers(
            lambda value, service: service.register_event_time_timer(10),
            lambda timestamp, service: service.register_event_time_timer(timestamp + 10),
        )
    )
    driver = Driver(operator)
    driver.records([("a",)])
    assert [t for _, t in driver.watermark(45)] == [10, 20, 30, 40]
    assert [t for _, t in driver.watermark(50)] == [50]


def test_processing_timers_fire_in_mail_and_their_outputs_have_no_timestamp() -> None:
    """Not even where the record had one."""
    operator = KeyedProcessOperator(
        Timers(
            lambda value, service: service.register_processing_time_timer(110),
            lambda timestamp, service: None,
        )
    )
    driver = Driver(operator)
    driver.records([("a",), ("b",)], [5, 6])
    assert driver.processing_time(109) == []
    fired = driver.processing_time(200)
    assert sorted(fired) == [
        (("a", 110, "PROCESSING_TIME"), None),
        (("b", 110, "PROCESSING_TIME"), None),
    ]
    assert driver.watermark(MAX_TIMESTAMP) == []


def test_close_cancels_the_wake_up() -> None:
    """A clock must not call a task that is gone."""
    operator = KeyedProcessOperator(
        Timers(
            lambda value, service: service.register_processing_time_timer(110),
            lambda timestamp, service: None,
        )
    )
    driver = Driver(operator)
    driver.records([("a",)])
    assert driver.context.clock.scheduled() == [110]
    operator.close()
    assert driver.context.clock.scheduled() == []


def test_close_before_anything_else_is_harmless() -> None:
    """A task closes its operators whatever happened before."""
    KeyedProcessOperator(Counting()).close()


def test_tagged_outputs_go_to_the_side_from_records_and_timers() -> None:
    """With the timestamp of what caused them."""

    class Alerting(Counting):
        def process_element(self, value: Any, ctx: Context) -> Iterator[Any]:
            ctx.timer_service().register_event_time_timer(value[1])
            yield ALERT, "record"

        def on_timer(self, timestamp: int, ctx: OnTimerContext) -> Iterator[Any]:
            yield ALERT, "timer"
            yield "main"

    driver = Driver(KeyedProcessOperator(Alerting()))
    assert driver.records([("a", 10)], [3]) == [("alert", "record", 3)]
    assert driver.watermark(10) == [("main", 10), ("alert", "timer", 10)]


def test_plain_callables_serve_as_process_functions() -> None:
    """They have no timers' method; what they register fires into nothing."""

    def once(value: Any, ctx: Context) -> list[Any]:
        ctx.timer_service().register_event_time_timer(5)
        return [value]

    driver = Driver(KeyedProcessOperator(once))
    assert driver.records([("a", 1)]) == [(("a", 1), None)]
    assert driver.watermark(10) == []


def test_time_domain_outside_a_timer_is_refused() -> None:
    """A record has none."""
    driver = Driver(KeyedProcessOperator(lambda value, ctx: [ctx.time_domain()]))
    with pytest.raises(RuntimeError, match="in on_timer only"):
        driver.records([("a",)])


def test_a_state_object_put_out_is_a_copy() -> None:
    """Else a batch would hold it several times with its last content."""

    class Growing(Counting):
        def process_element(self, value: Any, ctx: Context) -> Iterator[Any]:
            seen: Any = self.count.value() or []
            seen.append(value[1])
            self.count.update(seen)
            yield seen
            yield ctx.get_current_key(), seen

        def on_timer(self, timestamp: int, ctx: OnTimerContext) -> Iterator[Any]:
            yield self.count.value()

    driver = Driver(KeyedProcessOperator(Growing()))
    outputs = driver.records([("a", 1), ("a", 2)])
    assert [value for value, _ in outputs] == [[1], ("a", [1]), [1, 2], ("a", [1, 2])]


def test_every_kind_of_state_is_at_hand() -> None:
    """By the descriptors' names and PyFlink's methods."""

    class All(KeyedProcessFunction[str, Any, Any]):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.items = runtime_context.get_list_state(ListStateDescriptor("items", int))
            self.table = runtime_context.get_map_state(MapStateDescriptor("table", str, int))
            self.sum = runtime_context.get_reducing_state(
                ReducingStateDescriptor("sum", lambda a, b: a + b, int)
            )
            self.text = runtime_context.get_aggregating_state(
                AggregatingStateDescriptor("text", _Concatenation(), str)
            )

        def process_element(self, value: Any, ctx: Context) -> Iterator[Any]:
            self.items.add(value[1])
            self.table.put(str(value[1]), value[1])
            self.sum.add(value[1])
            self.text.add(value[1])
            yield list(self.items), dict(self.table.items()), self.sum.get(), self.text.get()

    driver = Driver(KeyedProcessOperator(All()))
    driver.records([("a", 1), ("b", 9)])
    ((last, _),) = driver.records([("a", 2)])
    assert last == ([1, 2], {"1": 1, "2": 2}, 3, "<12>")


class _Concatenation:
    def create_accumulator(self) -> str:
        return ""

    def add(self, value: int, accumulator: str) -> str:
        return accumulator + str(value)

    def get_result(self, accumulator: str) -> str:
        return f"<{accumulator}>"

    def merge(self, acc_a: str, acc_b: str) -> str:
        return acc_a + acc_b


def test_an_endless_record_is_handed_on_in_full_batches_at_its_timestamp() -> None:
    """The operator says that it is inside a record until the generator goes on."""

    def endless(value: Any, ctx: Context) -> Iterator[Any]:
        while True:
            yield value

    operator = KeyedProcessOperator(endless)
    Driver(operator)
    work = iter(operator.process_batch(RecordBatch(["x"], [7], ["k"])))
    for _ in range(3):
        out = next(work)
        assert isinstance(out, RecordBatch)
        assert out.timestamps == [7] * BATCH_RECORDS_MAX
        assert operator.in_record


def test_many_due_timers_come_out_in_bounded_batches_with_pauses() -> None:
    """Nor do those that put nothing out keep the task from looking at its budget."""
    driver = Driver(KeyedProcessOperator(Counting()))
    driver.records([(f"k{i}", i % 7) for i in range(5_000)])
    driver.batch_sizes.clear()
    assert len(driver.watermark(10)) == 5_000
    assert max(driver.batch_sizes) <= BATCH_RECORDS_MAX
    assert driver.pauses >= 5_000 // TIMERS_PER_PAUSE


def test_between_two_timers_other_calls_may_come_in() -> None:
    """Keys, contexts and outputs of both are kept apart."""
    operator = KeyedProcessOperator(Counting())
    driver = Driver(operator)
    driver.records([(f"k{i}", 5) for i in range(600)])
    work = iter(operator.process_watermark(Watermark(10)))
    first = [next(work)]
    while operator.in_record:
        first.append(next(work))
    assert driver.records([("other", None)], [99]) == [(("other", 1, 99), 99)]
    rest = [e for e in (*first, *work) if isinstance(e, RecordBatch)]
    keys = {value[0] for batch in rest for value in batch.values}  # type: ignore[index]  # tuples
    assert keys == {f"k{i}" for i in range(600)}


def test_failures_leave_position_and_key() -> None:
    """For a record both, for a timer the key alone."""

    def element(value: Any, service: Any) -> None:
        service.register_event_time_timer(10)
        if value[0] == "bad":
            raise KeyError("ts")

    def timer(timestamp: int, service: Any) -> None:
        raise KeyError("timer")

    operator = KeyedProcessOperator(Timers(element, timer))
    driver = Driver(operator)
    with pytest.raises(KeyError, match="ts"):
        driver.records([("a",), ("b",), ("bad",), ("c",)])
    assert (operator.position(), operator.key) == (2, "bad")

    operator = KeyedProcessOperator(Timers(element, timer))
    driver = Driver(operator)
    driver.records([("a",)])
    with pytest.raises(KeyError, match="timer"):
        driver.watermark(10)
    assert (operator.position(), operator.key) == (None, "a")


def test_an_unhashable_key_is_named_with_the_remedy() -> None:
    """Not as a TypeError from the depths."""
    driver = Driver(KeyedProcessOperator(Counting()))
    with pytest.raises(UnstableKeyError):
        driver.records([("a", None), ("b", None)], keys=["a", ["b"]])  # type: ignore[list-item]  # on purpose


def test_a_type_error_of_user_code_stays_one() -> None:
    """It is not mistaken for a bad key."""
    driver = Driver(KeyedProcessOperator(lambda value, ctx: len(value)))
    with pytest.raises(TypeError, match="must return None or an iterable"):
        driver.records([("a", 1)])
    with pytest.raises(TypeError, match="has no len"):
        driver.records([5], keys=["k"])


@pytest.mark.parametrize("cut", [1, 2, 3, 5])
def test_batch_boundaries_do_not_show(cut: int) -> None:
    """Outputs, state and timers are the same however the records are cut."""
    records = [(f"k{i % 3}", i % 4 * 10) for i in range(30)]
    whole = Driver(KeyedProcessOperator(Counting()))
    outputs = whole.records(records, range(30))
    pieces = Driver(KeyedProcessOperator(Counting()))
    cut_outputs = [
        output
        for begin in range(0, 30, cut)
        for output in pieces.records(records[begin : begin + cut], range(30)[begin : begin + cut])
    ]
    assert cut_outputs == outputs
    assert sorted(pieces.watermark(100)) == sorted(whole.watermark(100))
