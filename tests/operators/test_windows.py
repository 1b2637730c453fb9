"""Windows, their grid and the assigners."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.elements import MAX_TIMESTAMP
from operators.time import Duration, Time
from operators.triggers import EventTimeTrigger, ProcessingTimeTrigger, Window
from operators.window_grid import TimeWindow, WindowGrid
from operators.windows import (
    GlobalWindow,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)

CASES = Path(__file__).parents[1] / "conformance" / "cases" / "a_window_start.json"
ROWS = [row for row in json.loads(CASES.read_text())["rows"] if row[0] != -(2**63)]

grids = st.builds(
    lambda size, slide, offset: WindowGrid(size, slide, offset % slide),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(-60, 60),
)
times = st.integers(-500, 500)


class FixedClock(WindowAssigner.WindowAssignerContext):
    """Always the same time."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def get_current_processing_time(self) -> int:
        return self._now_ms

    def get_runtime_context(self) -> Any:
        raise AssertionError("not asked for")


@pytest.mark.parametrize(("timestamp", "offset", "size", "start"), ROWS)
def test_the_start_of_a_window_is_that_of_flink(
    timestamp: int, offset: int, size: int, start: int
) -> None:
    """Start rounds down, below zero as well, whatever the offset."""
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, size) == start


@pytest.mark.parametrize(
    ("size", "offset", "timestamp", "window"),
    [
        (1000, 0, -1, (-1000, 0)),
        (1000, 0, 0, (0, 1000)),
        (1000, 0, -1600, (-2000, -1000)),
        (1000, 300, 0, (-700, 300)),
        (1000, 300, 299, (-700, 300)),
        (1000, 300, 300, (300, 1300)),
        (1000, -300, 0, (-300, 700)),
    ],
)
def test_a_time_has_one_tumbling_window(
    size: int, offset: int, timestamp: int, window: tuple[int, int]
) -> None:
    """Also for negative times and offsets."""
    assigner = TumblingEventTimeWindows.of(size, offset)
    assert list(assigner.assign_windows("any", timestamp, FixedClock(0))) == [window]


@pytest.mark.parametrize(
    ("slide", "starts"),
    [
        (700, [1709315512100, 1709315511400]),
        (800, [1709315512000, 1709315511200]),
    ],
)
def test_a_time_has_a_sliding_window_per_slide(slide: int, starts: list[int]) -> None:
    """The latest comes first; the slide need not divide the size."""
    assigner = SlidingEventTimeWindows.of(1600, slide)
    windows = assigner.assign_windows("any", 1709315512577, FixedClock(0))
    assert list(windows) == [TimeWindow(start, start + 1600) for start in starts]


@given(grids, times)
def test_the_windows_of_a_time_are_all_that_contain_it(grid: WindowGrid, timestamp: int) -> None:
    """No window of the grid is missing, none is too many, the latest is first."""
    first = (timestamp - 2 * grid.size - grid.offset) // grid.slide
    last = (timestamp + grid.slide - grid.offset) // grid.slide
    starts = [grid.offset + number * grid.slide for number in range(last, first, -1)]
    expected = [
        TimeWindow(start, start + grid.size)
        for start in starts
        if start <= timestamp < start + grid.size
    ]
    assert list(grid.windows(timestamp)) == expected


@given(grids, times)
def test_a_pane_is_a_stretch_of_time_with_the_same_windows(
    grid: WindowGrid, timestamp: int
) -> None:
    """The pane starts where the windows begin to be these, one and all."""
    pane = grid.pane(timestamp)
    windows = grid.windows(timestamp)
    assert pane <= timestamp
    assert all(grid.windows(between) == windows for between in range(pane, timestamp))
    assert grid.windows(pane - 1) != windows
    assert grid.panes([timestamp, pane]) == [pane, pane]


@given(grids, times)
def test_from_the_open_time_on_no_window_is_due(grid: WindowGrid, watermark: int) -> None:
    """Below it, without gaps between the windows, the earliest window is due."""
    open_from = grid.open_from(watermark)
    for timestamp in range(open_from, open_from + grid.size + grid.slide):
        assert all(window.max_timestamp() > watermark for window in grid.windows(timestamp))
    if grid.slide <= grid.size:
        assert grid.windows(open_from - 1)[-1].max_timestamp() <= watermark


@pytest.mark.parametrize(
    "assigner",
    [TumblingProcessingTimeWindows.of(10, 4), SlidingProcessingTimeWindows.of(10, 10, 4)],
)
def test_processing_time_windows_go_by_the_clock(assigner: Any) -> None:
    """The record's timestamp does not count."""
    assert list(assigner.assign_windows("any", 1_000, FixedClock(3))) == [(-6, 4)]


@pytest.mark.parametrize(
    ("assigner", "trigger"),
    [
        (TumblingEventTimeWindows.of(10), EventTimeTrigger),
        (SlidingEventTimeWindows.of(10, 5), EventTimeTrigger),
        (TumblingProcessingTimeWindows.of(10), ProcessingTimeTrigger),
        (SlidingProcessingTimeWindows.of(10, 5), ProcessingTimeTrigger),
    ],
)
def test_an_assigner_names_the_trigger_of_its_time(assigner: Any, trigger: type) -> None:
    """Event time and processing time fire by their own clocks."""
    assert type(assigner.get_default_trigger()) is trigger
    assert assigner.is_event_time() is (trigger is EventTimeTrigger)


@pytest.mark.parametrize("tumbling", [TumblingEventTimeWindows, TumblingProcessingTimeWindows])
@pytest.mark.parametrize(
    ("size", "offset", "named"),
    [(0, 0, "size"), (-1, 0, "size"), (10, 10, "offset"), (10, -10, "offset")],
)
def test_tumbling_windows_refuse_sizes_and_offsets_that_make_no_grid(
    tumbling: Any, size: int, offset: int, named: str
) -> None:
    """The message names the setting."""
    with pytest.raises(ValueError, match=named):
        tumbling.of(size, offset)


@pytest.mark.parametrize("sliding", [SlidingEventTimeWindows, SlidingProcessingTimeWindows])
@pytest.mark.parametrize(
    ("size", "slide", "offset", "named"),
    [(0, 5, 0, "size"), (10, 0, 0, "slide"), (10, 5, 5, "offset"), (10, 5, -5, "offset")],
)
def test_sliding_windows_refuse_sizes_slides_and_offsets_that_make_no_grid(
    sliding: Any, size: int, slide: int, offset: int, named: str
) -> None:
    """The offset is measured against the slide."""
    with pytest.raises(ValueError, match=named):
        sliding.of(size, slide, offset)


@pytest.mark.parametrize("size", [1.5, "10 s", None, True])
def test_a_size_that_is_no_length_of_time_is_refused(size: Any) -> None:
    """A float could be seconds or milliseconds."""
    with pytest.raises(TypeError, match="size"):
        TumblingEventTimeWindows.of(size)


@pytest.mark.parametrize(
    "ten_seconds", [10_000, timedelta(seconds=10), Time.seconds(10), Duration.of_seconds(10)]
)
def test_lengths_of_time_come_in_four_forms(ten_seconds: Any) -> None:
    """All of them mean the same."""
    assert TumblingEventTimeWindows.of(ten_seconds).grid == WindowGrid(10_000, 10_000, 0)


def test_windows_that_touch_intersect() -> None:
    """As in Flink, for windows that merge; those with a gap between them do not."""
    assert TimeWindow(0, 10).intersects(TimeWindow(10, 20))
    assert TimeWindow(10, 20).intersects(TimeWindow(0, 10))
    assert TimeWindow(0, 10).intersects(TimeWindow(3, 4))
    assert not TimeWindow(0, 10).intersects(TimeWindow(11, 20))


def test_a_cover_contains_both_windows() -> None:
    """The smallest that does, whichever is asked."""
    assert TimeWindow(0, 10).cover(TimeWindow(5, 8)) == TimeWindow(0, 10)
    assert TimeWindow(5, 12).cover(TimeWindow(0, 6)) == TimeWindow(0, 12)


def test_the_global_window_lasts_for_ever() -> None:
    """There is one only, by value."""
    assert GlobalWindow.get() == GlobalWindow()
    assert GlobalWindow().max_timestamp() == MAX_TIMESTAMP
    assert isinstance(GlobalWindow(), Window)
    assert isinstance(TimeWindow(0, 1), Window)


def test_a_window_comes_back_from_its_serializer() -> None:
    """As the same kind of window."""
    serializer = TumblingEventTimeWindows.of(10).get_window_serializer()
    window = serializer.deserialize(serializer.serialize(TimeWindow(0, 10)))
    assert window == TimeWindow(0, 10)
    assert type(window) is TimeWindow
