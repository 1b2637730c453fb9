"""The timer service: event time, processing time, the one wake-up."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import timers as timers_module
from operators.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, RecordBatch, StreamElement
from operators.errors import PermanentError
from operators.timers import InternalTimerService, checked_timestamp
from statebackends.timer_queue import Timer
from tests.operators.fakes import FakeContext, HandClock
from tests.operators.saved_state import restarted


class Service:
    """A timer service whose processing-time callback keeps what fired."""

    def __init__(self, context: FakeContext | None = None) -> None:
        self.context = context or FakeContext()
        self.fired: list[Timer] = []
        self.register_when_firing: list[int] = []
        self.armed_when_firing: list[list[int]] = []
        self.timers = InternalTimerService("timers", self.context, self._due)  # type: ignore[arg-type]  # has all that is used
        self.timers.open()

    def _due(self) -> Iterator[StreamElement]:
        while (timer := self.timers.poll_processing()) is not None:
            self.fired.append(timer)
            self.context.keyed_state.set_current_key(timer.key)
            for timestamp in self.register_when_firing:
                self.timers.register_processing_time_timer(None, timestamp)
                self.armed_when_firing.append(self.armed)
            self.register_when_firing = []
            yield RecordBatch([timer])

    @property
    def armed(self) -> list[int]:
        return self.context.clock.scheduled()

    def key(self, key: str) -> InternalTimerService:
        self.context.keyed_state.set_current_key(key)
        return self.timers

    def advance_clock(self, now_ms: int) -> list[tuple[int, object]]:
        self.fired.clear()
        self.context.clock.set(now_ms)
        while self.context.mail:
            list(self.context.mail.pop(0)())
        return [(t.timestamp, t.key) for t in self.fired]

    def advance_watermark(self, timestamp: int) -> list[tuple[int, object, object]]:
        self.timers.advance_watermark(timestamp)
        return list(iter(self.timers.poll_event, None))  # type: ignore[arg-type]  # timers are tuples


def test_one_wake_up_serves_all_processing_time_timers() -> None:
    """It stands at the earliest timer and moves on as timers fire."""
    service = Service()
    for namespace, timestamps in (("a", (10, 20, 30)), ("b", (20, 10))):
        for timestamp in timestamps:
            service.key("k").register_processing_time_timer(namespace, timestamp)
    assert service.armed == [10]
    assert service.advance_clock(10) == [(10, "k"), (10, "k")]
    assert service.armed == [20]
    assert service.advance_clock(20) == [(20, "k"), (20, "k")]
    assert service.armed == [30]
    assert service.advance_clock(30) == [(30, "k")]
    assert service.armed == []
    service.key("k").register_processing_time_timer("a", 40)
    assert service.armed == [40]


def test_an_earlier_timer_moves_the_wake_up() -> None:
    """There is never a second one."""
    service = Service()
    service.key("k").register_processing_time_timer(None, 20)
    service.key("k").register_processing_time_timer(None, 10)
    assert service.armed == [10]


def test_registering_inside_the_callback_leaves_one_wake_up() -> None:
    """Neither registering in order nor out of order leaks one."""
    service = Service()
    service.key("k").register_processing_time_timer(None, 10)
    service.register_when_firing = [30, 20]
    service.advance_clock(10)
    assert service.armed_when_firing == [[30], [20]]
    assert service.armed == [20]


def test_a_timer_in_the_past_fires_with_the_next_turn_of_the_clock() -> None:
    """Not inside the call that registers it."""
    service = Service(FakeContext(HandClock(100)))
    service.key("k").register_processing_time_timer(None, 50)
    assert service.fired == []
    assert service.advance_clock(100) == [(50, "k")]


def test_timers_that_became_due_before_the_mail_runs_fire_with_it() -> None:
    """Due is what the clock says when the mail runs; until then no other wake-up is armed."""
    service = Service()
    service.key("k").register_processing_time_timer(None, 10)
    service.context.clock.set(10)
    service.key("k").register_processing_time_timer(None, 11)
    assert service.armed == []
    assert service.advance_clock(11) == [(10, "k"), (11, "k")]


def test_deleted_timers_do_not_fire_and_absent_ones_are_no_error() -> None:
    """The wake-up for nothing arms the next one."""
    service = Service()
    service.key("k").register_processing_time_timer(None, 10)
    service.timers.register_processing_time_timer(None, 20)
    service.timers.delete_processing_time_timer(None, 10)
    service.timers.delete_processing_time_timer(None, 99)
    assert service.advance_clock(10) == []
    assert service.armed == [20]
    service.timers.register_event_time_timer(None, 5)
    service.timers.delete_event_time_timer(None, 5)
    service.timers.delete_event_time_timer(None, 6)
    assert service.advance_watermark(MAX_TIMESTAMP) == []


def test_close_gives_up_the_wake_up() -> None:
    """Nothing is armed afterwards, not even by a callback that is under way."""
    service = Service()
    service.key("k").register_processing_time_timer(None, 10)
    service.timers.close()
    service.timers.register_processing_time_timer(None, 5)
    assert service.armed == []
    service.timers.close()


def test_event_timers_fire_once_in_order_of_time() -> None:
    """Equal timers of key and namespace are one; each key and namespace has its own."""
    service = Service()
    for key in ("k1", "k2"):
        for namespace in ("hello", "ciao"):
            for timestamp in (10, 10, 5):
                service.key(key).register_event_time_timer(namespace, timestamp)
    assert service.advance_watermark(4) == []
    fired = service.advance_watermark(10)
    assert [t for t, _, _ in fired] == [5] * 4 + [10] * 4
    assert len(set(fired)) == 8
    assert service.advance_watermark(MAX_TIMESTAMP) == []


def test_equal_keys_share_their_timers() -> None:
    """1, 1.0 and True are one key, and the timer has its representative."""
    service = Service()
    for key in (1, 1.0, True):
        service.key(key).register_event_time_timer(None, 10)  # type: ignore[arg-type]  # any key
    assert service.advance_watermark(10) == [(10, 1, None)]


def test_a_timer_at_or_below_the_watermark_waits_for_the_next_one() -> None:
    """Outside the firing of timers; inside it joins the round."""
    service = Service()
    service.advance_watermark(100)
    service.key("k").register_event_time_timer(None, 50)
    assert service.advance_watermark(100) == [(50, "k", None)]
    service.timers.register_event_time_timer(None, 101)
    service.timers.advance_watermark(120)
    assert service.timers.poll_event() == (101, "k", None)
    service.timers.register_event_time_timer(None, 7)
    assert service.timers.poll_event() == (7, "k", None)
    assert service.timers.poll_event() is None


def test_the_watermark_is_the_lowest_before_the_first() -> None:
    """As a function sees it at its first record."""
    assert Service().timers.current_watermark == MIN_TIMESTAMP


def test_timers_survive_a_restart_and_the_wake_up_is_armed_again() -> None:
    """They live in keyed state."""
    service = Service()
    service.key("k1").register_processing_time_timer("ns", 10)
    service.key("k2").register_event_time_timer("ns", 20)
    context = FakeContext(HandClock(50), restarted(service.context.keyed_state))
    again = Service(context)
    assert again.armed == [10]
    assert again.advance_clock(50) == [(10, "k1")]
    assert again.advance_watermark(20) == [(20, "k2", "ns")]


def test_timers_that_go_on_after_the_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer that always registers the next one would fire until the end of time."""
    monkeypatch.setattr(timers_module, "FINAL_TIMERS_MAX", 100)
    service = Service()
    service.key("k").register_event_time_timer(None, 0)
    service.timers.advance_watermark(MAX_TIMESTAMP)
    fired: list[Timer] = []

    def fire_all() -> None:
        while (timer := service.timers.poll_event()) is not None:
            fired.append(timer)
            service.timers.register_event_time_timer(None, timer.timestamp + 10)

    with pytest.raises(PermanentError, match="after the end of the input"):
        fire_all()
    assert len(fired) == 101


@pytest.mark.parametrize("timestamp", [MIN_TIMESTAMP, -1, 0, MAX_TIMESTAMP])
def test_every_timestamp_of_64_bits_is_legal(timestamp: int) -> None:
    """The limits included."""
    service = Service()
    service.key("k").register_event_time_timer(None, timestamp)
    assert service.advance_watermark(MAX_TIMESTAMP) == [(timestamp, "k", None)]


@pytest.mark.parametrize("timestamp", [True, 1.0, "5", None])
def test_what_is_no_int_is_refused(timestamp: object) -> None:
    """A bool or a float is a mistake, not a time."""
    with pytest.raises(TypeError, match="int in ms"):
        checked_timestamp(timestamp)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP + 1, MIN_TIMESTAMP - 1])
def test_what_needs_more_than_64_bits_is_refused(timestamp: int) -> None:
    """It could not be stored."""
    with pytest.raises(ValueError, match="64 bits"):
        checked_timestamp(timestamp)


steps = st.lists(
    st.tuples(
        st.sampled_from(["register", "delete", "clock"]),
        st.sampled_from("abc"),
        st.integers(0, 40),
    ),
    max_size=40,
)


@given(steps)
def test_processing_timers_fire_as_a_plain_set_would(steps: list[tuple[str, str, int]]) -> None:
    """Each once, when the clock reaches it, and there is one wake-up while one waits."""
    service = Service()
    waiting: set[tuple[int, str]] = set()
    now = 0
    for kind, key, number in steps:
        if kind == "register":
            service.key(key).register_processing_time_timer(None, number)
            waiting.add((number, key))
        elif kind == "delete":
            service.key(key).delete_processing_time_timer(None, number)
            waiting.discard((number, key))
        else:
            now = max(now, number)
            due = {timer for timer in waiting if timer[0] <= now}
            fired = service.advance_clock(now)
            assert set(fired) == due
            assert [t for t, _ in fired] == sorted(t for t, _ in due)
            waiting -= due
        assert len(service.armed) <= 1
        if waiting:
            assert service.armed[0] <= min(waiting)[0]
