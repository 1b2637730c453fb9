"""The minimum watermark of several partial ones; pure, no I/O and no clock.

`SplitWatermarks` combines the splits inside a source (Flink: `WatermarkOutputMultiplexer`),
`InputWatermarks` the inputs of a two-input operator (Flink: `IndexedCombinedWatermarkStatus`).
They differ from `WatermarkValve` of a channel: a partial watermark that joins or becomes active
holds the output back at once, even if it lags behind it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from operators.elements import (
    ACTIVE,
    IDLE,
    MIN_TIMESTAMP,
    Watermark,
    WatermarkStatus,
)

WatermarkElements = tuple[Watermark | WatermarkStatus, ...]
"""What a step puts out: nothing, a watermark, a status, or one after the other."""


class _Partial:
    __slots__ = ("idle", "watermark")

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = False


class CombinedWatermark:
    """Partial watermarks by name and their minimum over those that are not idle."""

    def __init__(self) -> None:
        self._partials: dict[Hashable, _Partial] = {}
        self.watermark = MIN_TIMESTAMP
        """The highest minimum so far."""
        self.idle = False
        """True if every partial watermark was idle at the last `combine`."""

    def __len__(self) -> int:
        return len(self._partials)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._partials

    def register(self, name: Hashable) -> None:
        """A partial watermark joins at -2**63; `ValueError` if the name is taken."""
        if name in self._partials:
            raise ValueError(f"{name!r} has a watermark already")
        self._partials[name] = _Partial()

    def unregister(self, name: Hashable) -> bool:
        """A partial watermark leaves; false if there was none. Takes effect at `combine`."""
        return self._partials.pop(name, None) is not None

    def update(self, name: Hashable, timestamp: int) -> bool:
        """Raises a partial watermark and makes it active; true if it rose."""
        partial = self._partials[name]
        partial.idle = False
        if timestamp <= partial.watermark:
            return False
        partial.watermark = timestamp
        return True

    def mark(self, name: Hashable, idle: bool) -> None:
        """Makes a partial watermark idle or active."""
        self._partials[name].idle = idle

    def partial_watermarks(self) -> Iterable[tuple[Hashable, int, bool]]:
        """(name, watermark, idle) of each, to show who holds the output back."""
        for name, partial in self._partials.items():
            yield name, partial.watermark, partial.idle

    def combine(self) -> bool:
        """Works out `idle` and `watermark`; true if the watermark rose.

        Without any partial watermark nothing changes.
        """
        if not self._partials:
            return False
        lowest = min((p.watermark for p in self._partials.values() if not p.idle), default=None)
        self.idle = lowest is None
        if lowest is None or lowest <= self.watermark:
            return False
        self.watermark = lowest
        return True


class SplitWatermarks(CombinedWatermark):
    """The splits of one source subtask; what it puts out follows its own status.

    It is idle once every split is; it becomes active again with the next watermark that it puts
    out, not before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reported_idle = False

    def elements(self) -> WatermarkElements:
        """What the splits' watermarks and states amount to now."""
        if self.combine():
            watermark = Watermark(self.watermark)
            return (*self.report(idle=False), watermark)
        return self.report(idle=True) if self.idle and self._partials else ()

    def report(self, *, idle: bool) -> tuple[WatermarkStatus, ...]:
        """The status element, if it is not the one that was put out last."""
        if self._reported_idle is idle:
            return ()
        self._reported_idle = idle
        return (IDLE if idle else ACTIVE,)


class InputWatermarks:
    """The inputs of one operator; its status follows theirs at once."""

    def __init__(self, inputs: int) -> None:
        self._combined = CombinedWatermark()
        for index in range(inputs):
            self._combined.register(index)

    @property
    def current(self) -> int:
        """The last combined watermark."""
        return self._combined.watermark

    def watermark(self, index: int, timestamp: int) -> WatermarkElements:
        """A watermark came in on an input."""
        self._combined.update(index, timestamp)
        return self._elements()

    def status(self, index: int, idle: bool) -> WatermarkElements:
        """A status came in on an input; leaving an idle one out can raise the watermark."""
        self._combined.mark(index, idle)
        return self._elements()

    def _elements(self) -> WatermarkElements:
        combined = self._combined
        was_idle = combined.idle
        rose = combined.combine()
        watermark = (Watermark(combined.watermark),) if rose else ()
        if was_idle is combined.idle:
            return watermark
        # A watermark of an idle sender is ignored by receivers: active comes before it. Flink
        # sends the status behind it; there the receiver of a chained operator does not look.
        return (*watermark, IDLE) if combined.idle else (ACTIVE, *watermark)
