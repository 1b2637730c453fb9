"""Reports what may pass by itself: one line every few seconds, however often it happens."""

from __future__ import annotations

import logging

from statebackends.clock import Clock

_logger = logging.getLogger("riverrun.kafka")

INTERVAL_SECONDS = 5.0


class Complaints:
    """The complaints of one client."""

    def __init__(self, clock: Clock, who: str) -> None:
        self._clock = clock
        self._who = who
        self._last: float | None = None
        self._held_back = 0

    def say(self, text: str) -> None:
        """Logs a warning, unless the last one was a moment ago."""
        now = self._clock.monotonic()
        if self._last is not None and now - self._last < INTERVAL_SECONDS:
            self._held_back += 1
            return
        more = f" ({self._held_back} more since the last message)" if self._held_back else ""
        _logger.warning("%s: %s%s", self._who, text, more)
        self._last = now
        self._held_back = 0
