"""Windows and window assigners with PyFlink's names.

An assigner says which windows an element belongs to, which trigger fires them unless the job
names another, and whether they follow event time or processing time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from operators.elements import MAX_TIMESTAMP
from operators.time import TimeLike, to_ms
from operators.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger, Window
from operators.window_grid import TimeWindow, WindowGrid
from statebackends.serializers import PickleSerializer, TypeSerializer

if TYPE_CHECKING:
    from operators.runtime_context import RuntimeContext

T_contra = TypeVar("T_contra", contravariant=True)
W_co = TypeVar("W_co", bound=Window, covariant=True)


@dataclass(frozen=True, slots=True)
class GlobalWindow:
    """The one window that holds everything (Flink: `GlobalWindow`)."""

    @staticmethod
    def get() -> GlobalWindow:
        """The window; all instances are equal."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """The end of time."""
        return MAX_TIMESTAMP


class WindowAssigner(ABC, Generic[T_contra, W_co]):
    """Assigns elements to windows; subclass it for windows of your own."""

    class WindowAssignerContext(ABC):
        """What an assigner can ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Processing time in ms since the epoch."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The runtime context of the window operator."""

    @abstractmethod
    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssignerContext
    ) -> Collection[W_co]:
        """The windows that `element` belongs to; none drops it."""

    @abstractmethod
    def get_default_trigger(self, env: object = None) -> Trigger[object, Window]:
        """The trigger of these windows unless the job names another; `env` is not used."""

    def get_window_serializer(self) -> TypeSerializer[Any]:
        """How windows are written into checkpoints: pickled, as every namespace of state."""
        return PickleSerializer()

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether the windows end by the watermark rather than by the clock."""


class GridWindows(WindowAssigner[object, TimeWindow]):
    """Windows at regular distances; the classes below add the kind of time and the arguments."""

    def __init__(self, size: TimeLike, slide: TimeLike, offset: TimeLike, distance: str) -> None:
        grid = WindowGrid(to_ms(size, "size"), to_ms(slide, distance), to_ms(offset, "offset"))
        name = type(self).__name__
        if grid.size <= 0:
            raise ValueError(f"{name}: size must be above 0 ms, not {grid.size}")
        if grid.slide <= 0:
            raise ValueError(f"{name}: {distance} must be above 0 ms, not {grid.slide}")
        if abs(grid.offset) >= grid.slide:
            raise ValueError(
                f"{name}: abs(offset) must be below {distance}; "
                f"offset is {grid.offset} ms, {distance} {grid.slide} ms"
            )
        self.grid = grid
        # Records that follow each other often share their windows.
        self._pane: int | None = None
        self._windows_of_pane: tuple[TimeWindow, ...] = ()

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """The windows of the grid that contain the time of the element, latest first."""
        if not self.is_event_time():
            timestamp = context.get_current_processing_time()
        pane = self.grid.pane(timestamp)
        if pane != self._pane:
            self._pane, self._windows_of_pane = pane, self.grid.windows(pane)
        return self._windows_of_pane

    def get_default_trigger(self, env: object = None) -> Trigger[object, Window]:
        """Fires at the end of the window by the assigner's kind of time."""
        return EventTimeTrigger() if self.is_event_time() else ProcessingTimeTrigger()

    def __repr__(self) -> str:
        grid = self.grid
        slide = "" if grid.slide == grid.size else f", slide={grid.slide}"
        return f"{type(self).__name__}(size={grid.size}{slide}, offset={grid.offset})"


class TumblingEventTimeWindows(GridWindows):
    """Windows of equal size side by side, by the timestamps of the records.

    `offset` shifts all windows and may be negative (windows of days in a time zone); its
    absolute value must be below `size`, else `ValueError`.
    """

    def __init__(self, size: TimeLike, offset: TimeLike = 0) -> None:
        super().__init__(size, size, offset, "size")

    @staticmethod
    def of(size: TimeLike, offset: TimeLike | None = None) -> TumblingEventTimeWindows:
        """Windows of `size`, shifted by `offset`."""
        return TumblingEventTimeWindows(size, 0 if offset is None else offset)

    def is_event_time(self) -> bool:
        """True."""
        return True


class TumblingProcessingTimeWindows(GridWindows):
    """As `TumblingEventTimeWindows`, by the clock: a record belongs to the time it comes in."""

    def __init__(self, size: TimeLike, offset: TimeLike = 0) -> None:
        super().__init__(size, size, offset, "size")

    @staticmethod
    def of(size: TimeLike, offset: TimeLike | None = None) -> TumblingProcessingTimeWindows:
        """Windows of `size`, shifted by `offset`."""
        return TumblingProcessingTimeWindows(size, 0 if offset is None else offset)

    def is_event_time(self) -> bool:
        """False."""
        return False


class SlidingEventTimeWindows(GridWindows):
    """Windows of `size` that start each `slide`, by the timestamps of the records.

    A slide below the size makes a record belong to several windows, one above it leaves gaps
    whose records belong to none. abs(offset) must be below `slide`, else `ValueError`.
    """

    def __init__(self, size: TimeLike, slide: TimeLike, offset: TimeLike = 0) -> None:
        super().__init__(size, slide, offset, "slide")

    @staticmethod
    def of(
        size: TimeLike, slide: TimeLike, offset: TimeLike | None = None
    ) -> SlidingEventTimeWindows:
        """Windows of `size` each `slide`, shifted by `offset`."""
        return SlidingEventTimeWindows(size, slide, 0 if offset is None else offset)

    def is_event_time(self) -> bool:
        """True."""
        return True


class SlidingProcessingTimeWindows(GridWindows):
    """As `SlidingEventTimeWindows`, by the clock: a record belongs to the time it comes in."""

    def __init__(self, size: TimeLike, slide: TimeLike, offset: TimeLike = 0) -> None:
        super().__init__(size, slide, offset, "slide")

    @staticmethod
    def of(
        size: TimeLike, slide: TimeLike, offset: TimeLike | None = None
    ) -> SlidingProcessingTimeWindows:
        """Windows of `size` each `slide`, shifted by `offset`."""
        return SlidingProcessingTimeWindows(size, slide, 0 if offset is None else offset)

    def is_event_time(self) -> bool:
        """False."""
        return False


__all__ = [
    "GlobalWindow",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TimeWindow",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
]
