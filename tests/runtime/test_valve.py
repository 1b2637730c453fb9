"""The watermark valve: minimum, idleness, alignment, ends."""

from hypothesis import example, given
from hypothesis import strategies as st

from operators.elements import (
    ACTIVE,
    IDLE,
    MAX_TIMESTAMP,
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    Watermark,
)
from runtime.valve import ValveOutput, WatermarkValve

Step = tuple[str, int, int]


def drive(valve: WatermarkValve, *steps: Step) -> list[ValveOutput]:
    """Runs ("wm" | "idle" | "active" | "drained" | "stopped", channel, timestamp) steps."""
    outputs = []
    for kind, channel, timestamp in steps:
        if kind == "wm":
            outputs.append(valve.watermark(channel, timestamp))
        elif kind in {"idle", "active"}:
            outputs.append(valve.status(channel, kind == "idle"))
        else:
            outputs.append(valve.ended(channel, kind == "drained"))
    return outputs


def wms(*timestamps: int) -> list[ValveOutput]:
    return [(Watermark(t),) for t in timestamps]


def test_one_channel_passes_rising_watermarks_only() -> None:
    """A watermark that falls back is swallowed."""
    steps = [("wm", 0, t) for t in (0, 25, 18, 42)]
    assert drive(WatermarkValve(1), *steps) == [*wms(0, 25), (), *wms(42)]


def test_status_toggles_come_out_once_each() -> None:
    """Repeating a status changes nothing."""
    steps = [(s, 0, 0) for s in ("active", "idle", "idle", "active", "active")]
    assert drive(WatermarkValve(1), *steps) == [(), (IDLE,), (), (ACTIVE,), ()]


def test_watermark_of_an_idle_channel_is_ignored() -> None:
    """It is not even remembered for later."""
    valve = WatermarkValve(1)
    drive(valve, ("wm", 0, 25), ("idle", 0, 0))
    assert valve.watermark(0, 30) == ()
    assert valve.watermark_of(0) == 25
    assert drive(valve, ("active", 0, 0), ("wm", 0, 50)) == [(ACTIVE,), *wms(50)]


def test_output_is_the_minimum_of_all_channels() -> None:
    """Nothing comes out before each channel had a watermark."""
    valve = WatermarkValve(3)
    assert drive(valve, ("wm", 0, 0), ("wm", 1, 0), ("wm", 2, 0)) == [(), (), *wms(0)]
    steps = [("wm", 0, 12), ("wm", 2, 8), ("wm", 2, 10), ("wm", 1, 15), ("wm", 2, 17)]
    assert drive(valve, *steps) == [(), (), (), *wms(10, 12)]


def test_channels_going_idle_release_the_others() -> None:
    """Each time the slowest active channel goes idle the next slowest counts."""
    valve = WatermarkValve(3)
    drive(valve, ("wm", 0, 25), ("wm", 1, 10), ("wm", 2, 17))
    assert drive(valve, ("idle", 1, 0), ("idle", 2, 0)) == wms(17, 25)


def test_last_channel_going_idle_flushes_the_maximum() -> None:
    """Before the status comes the highest watermark of all channels."""
    valve = WatermarkValve(3)
    drive(valve, ("wm", 0, 10), ("wm", 1, 5), ("wm", 2, 3))
    steps = [("idle", 0, 0), ("idle", 1, 0), ("idle", 2, 0)]
    assert drive(valve, *steps) == [(), (), (Watermark(10), IDLE)]


def test_reactivated_laggard_does_not_hold_back_until_it_caught_up() -> None:
    """Its watermarks below the output count for nothing, from the output on they do."""
    valve = WatermarkValve(2)
    drive(valve, ("wm", 0, 3), ("wm", 1, 7), ("idle", 0, 0), ("active", 0, 0))
    assert valve.current == 7
    steps = [("wm", 0, 5), ("wm", 0, 9), ("wm", 1, 12)]
    assert drive(valve, *steps) == [(), (), *wms(9)]


def test_unaligned_channel_going_idle_puts_out_no_watermark() -> None:
    """Where every active channel lags there is no minimum to put out."""
    valve = WatermarkValve(2)
    drive(valve, ("wm", 0, 3), ("wm", 1, 7), ("idle", 0, 0), ("active", 0, 0))
    assert valve.status(1, idle=True) == ()
    assert valve.status(0, idle=True) == (IDLE,)


def test_drained_channel_counts_as_max() -> None:
    """It no longer holds back the others."""
    valve = WatermarkValve(2)
    drive(valve, ("wm", 0, 3), ("wm", 1, 7))
    assert drive(valve, ("drained", 0, 0), ("drained", 1, 0)) == [*wms(7), (MAX_WATERMARK,)]


def test_stopped_channel_stays_at_its_last_watermark() -> None:
    """A stop without drain must not make event time jump."""
    valve = WatermarkValve(2)
    drive(valve, ("wm", 0, 3), ("wm", 1, 7))
    assert drive(valve, ("stopped", 0, 0), ("wm", 1, 9)) == [(), ()]


def test_the_end_of_one_channel_does_not_make_the_idle_ones_late() -> None:
    """While the others are idle the end of one is idleness, not the end of time."""
    valve = WatermarkValve(2)
    drive(valve, ("wm", 0, 3), ("wm", 1, 7), ("idle", 1, 0))
    assert valve.ended(0, drained=True) == (Watermark(7), IDLE)
    steps = [("active", 1, 0), ("wm", 1, 20), ("drained", 1, 0)]
    assert drive(valve, *steps) == [(ACTIVE,), *wms(20), (MAX_WATERMARK,)]


def test_a_max_watermark_of_a_running_channel_is_one_like_any_other() -> None:
    """As in Flink it lifts the output while the other channels are idle."""
    valve = WatermarkValve(2)
    drive(valve, ("wm", 0, 3), ("wm", 1, 7), ("idle", 1, 0))
    assert valve.watermark(0, MAX_TIMESTAMP) == (MAX_WATERMARK,)
    assert drive(valve, ("drained", 0, 0), ("drained", 1, 0)) == [(IDLE,), ()]


def test_idle_channels_that_end_bring_activity_and_max() -> None:
    """MAX is not lost on receivers that ignore the watermarks of idle senders."""
    valve = WatermarkValve(2)
    drive(valve, ("idle", 0, 0), ("idle", 1, 0))
    steps = [("drained", 0, 0), ("drained", 1, 0)]
    assert drive(valve, *steps) == [(), (ACTIVE, MAX_WATERMARK)]


steps_of_three = st.lists(
    st.tuples(
        st.sampled_from(["wm", "wm", "wm", "idle", "active", "drained", "stopped"]),
        st.integers(0, 2),
        st.integers(-20, 20) | st.just(MAX_TIMESTAMP),
    ),
    max_size=60,
)


@given(steps_of_three)
def test_output_never_falls_and_statuses_alternate(steps: list[Step]) -> None:
    """Watermarks rise strictly, come while active, and a status never repeats."""
    last, idle = MIN_TIMESTAMP, False
    for output in drive(WatermarkValve(3), *steps):
        for element in output:
            if isinstance(element, Watermark):
                assert element.timestamp > last
                assert not idle
                last = element.timestamp
            else:
                assert element.idle is not idle
                idle = element.idle


@given(steps_of_three)
def test_without_idleness_the_output_is_the_plain_minimum(steps: list[Step]) -> None:
    """With active channels only, the valve is the minimum of the channels' maxima."""
    valve = WatermarkValve(3)
    seen = [MIN_TIMESTAMP] * 3
    for kind, channel, timestamp in steps:
        if kind == "wm":
            valve.watermark(channel, timestamp)
            seen[channel] = max(seen[channel], timestamp)
        elif kind == "drained":
            valve.ended(channel, drained=True)
            seen[channel] = MAX_TIMESTAMP
        assert valve.current == min(seen)


@given(steps_of_three)
@example(
    [("wm", 0, MAX_TIMESTAMP), ("idle", 0, 0)] + [("drained", channel, 0) for channel in (1, 2, 0)]
)
def test_idle_exactly_when_every_running_channel_is_idle(steps: list[Step]) -> None:
    """The status is a function of the channels' states; with none left MAX has come out."""
    valve = WatermarkValve(3)
    idle = [False] * 3
    finished = [False] * 3
    for step in steps:
        kind, channel, _ = step
        drive(valve, step)
        if kind == "drained":
            finished[channel] = True
        elif kind in {"idle", "active"}:
            idle[channel] = kind == "idle"
        running = [i for i in range(3) if not finished[i]]
        if running:
            assert valve.idle is all(idle[i] for i in running)
        else:
            assert valve.current == MAX_TIMESTAMP
