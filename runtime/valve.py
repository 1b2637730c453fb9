"""Aligns the watermarks of the channels of one input; pure, no I/O and no clock.

Flink: `StatusWatermarkValve`. The output is the minimum over the channels that are active and
*aligned*: a channel that was idle and lags behind the output does not hold it back until it has
caught up. Watermarks of an idle channel are ignored.

One deliberate difference: a channel that ended (by itself or drained) takes no part any more.
In Flink it stays as an active channel at MAX, lifts the output to MAX while the other channels
are merely idle, and everything that they bring afterwards is late. Here MAX comes out when every
channel has ended. A MAX watermark of a channel that goes on is a watermark like any other.
"""

from __future__ import annotations

from operators.elements import (
    ACTIVE,
    IDLE,
    MAX_TIMESTAMP,
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    Watermark,
    WatermarkStatus,
)

ValveOutput = tuple[Watermark | WatermarkStatus, ...]
"""What a step of the valve puts out: nothing, a watermark, a status, or one after the other."""


class _Channel:
    __slots__ = ("active", "aligned", "finished", "watermark")

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.active = True
        self.aligned = True
        self.finished = False


class WatermarkValve:
    """The combined watermark and status of `channels` channels, which all start active."""

    __slots__ = ("_channels", "_idle", "_live", "_watermark")

    def __init__(self, channels: int) -> None:
        if channels < 1:
            raise ValueError(f"a valve needs a channel, not {channels}")
        self._channels = [_Channel() for _ in range(channels)]
        self._live = list(self._channels)
        self._watermark = MIN_TIMESTAMP
        self._idle = False

    @property
    def current(self) -> int:
        """The last watermark put out."""
        return self._watermark

    @property
    def idle(self) -> bool:
        """True if the last status put out was idle."""
        return self._idle

    def watermark_of(self, channel: int) -> int:
        """The last watermark of one channel: shows who holds the output back."""
        return self._channels[channel].watermark

    def watermark(self, channel: int, timestamp: int) -> ValveOutput:
        """A watermark came in; one that does not exceed the channel's last is ignored."""
        state = self._channels[channel]
        if not state.active or timestamp <= state.watermark:
            return ()
        state.watermark = timestamp
        if not state.aligned and timestamp >= self._watermark:
            state.aligned = True
        return self._advance()

    def status(self, channel: int, idle: bool) -> ValveOutput:
        """A status came in; repeating the one at hand changes nothing."""
        state = self._channels[channel]
        if state.finished or state.active is not idle:
            return ()
        if idle:
            state.active = state.aligned = False
            return self._left(state.watermark)
        state.active = True
        state.aligned = state.watermark >= self._watermark
        if self._idle:
            self._idle = False
            return (ACTIVE,)
        return ()

    def ended(self, channel: int, drained: bool) -> ValveOutput:
        """A channel ended: drained it counts as MAX, otherwise it stays at its last watermark."""
        state = self._channels[channel]
        if state.finished or not drained:
            return ()
        return self._finish(state)

    def _finish(self, state: _Channel) -> ValveOutput:
        before, was_active = state.watermark, state.active
        state.watermark = MAX_TIMESTAMP
        state.finished = True
        self._live.remove(state)
        if not self._live:
            if self._watermark == MAX_TIMESTAMP:
                return ()
            self._watermark = MAX_TIMESTAMP
            if self._idle:
                self._idle = False
                return (ACTIVE, MAX_WATERMARK)
            return (MAX_WATERMARK,)
        return self._left(before) if was_active else ()

    def _left(self, watermark: int) -> ValveOutput:
        """What follows from an active channel at `watermark` no longer being one."""
        # Only a channel at the output can have held it back; one that lags never did.
        held = watermark == self._watermark
        if any(state.active for state in self._live):
            return self._advance() if held else ()
        self._idle = True
        highest = max(watermark, *(state.watermark for state in self._live))
        if held and highest > self._watermark:
            self._watermark = highest
            return (Watermark(highest), IDLE)
        return (IDLE,)

    def _advance(self) -> ValveOutput:
        lowest = min((state.watermark for state in self._live if state.aligned), default=None)
        if lowest is None or lowest <= self._watermark:
            return ()
        self._watermark = lowest
        return (Watermark(lowest),)
