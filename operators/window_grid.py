"""The regular grid that tumbling and sliding windows form on the time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class TimeWindow(NamedTuple):
    """The half-open interval of time [start, end) in ms (Flink: `TimeWindow`).

    It is a tuple because it serves as the namespace of state and timers: compared, hashed and
    serialised for every firing.
    """

    start: int
    end: int

    def max_timestamp(self) -> int:
        """The last timestamp that belongs to the window; its results carry it."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch (as in Flink, where touching sessions merge)."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Start of the window of a grid that contains `timestamp`; rounds down below zero too."""
        return timestamp - (timestamp - offset) % window_size


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """Windows [offset + n * slide, offset + n * slide + size) for every integer n; all in ms.

    A *pane* is a longest stretch of time whose timestamps lie in the same windows. It is named
    by its start. Where `slide` divides `size`, each slide is one pane, else two.
    """

    size: int
    slide: int
    offset: int

    def windows(self, timestamp: int) -> tuple[TimeWindow, ...]:
        """The windows of a timestamp, latest first (the order in which Flink assigns them)."""
        size, slide = self.size, self.slide
        start = timestamp - (timestamp - self.offset) % slide
        if size == slide:
            return (TimeWindow(start, start + size),)
        return tuple(TimeWindow(s, s + size) for s in range(start, timestamp - size, -slide))

    def panes(self, timestamps: Sequence[int]) -> list[int]:
        """The pane of each timestamp."""
        slide, offset = self.slide, self.offset
        rest = self.size % slide
        if not rest:
            return [t - (t - offset) % slide for t in timestamps]
        return [
            t - past if (past := (t - offset) % slide) < rest else t - past + rest
            for t in timestamps
        ]

    def pane(self, timestamp: int) -> int:
        """The pane of one timestamp."""
        rest = self.size % self.slide
        past = (timestamp - self.offset) % self.slide
        return timestamp - past if not rest or past < rest else timestamp - past + rest

    def open_from(self, watermark: int) -> int:
        """The first timestamp from which on all windows end behind `watermark`.

        Every record at or above it lies only in windows whose last timestamp is still to come;
        one below it may lie in a window that is due.
        """
        if self.slide > self.size:
            # Between the windows lie gaps; a record there counts as late by its own timestamp.
            return watermark + 1
        last_due = watermark + 1 - self.size
        return last_due - (last_due - self.offset) % self.slide + self.size
