"""Something an operator does again and again, by the clock."""

from __future__ import annotations

from collections.abc import Callable

from operators.stream_operator import OperatorContext, Work
from statebackends.clock import ScheduledCall


class PeriodicMail:
    """Has the task call `action` each `interval_ms`, counted from the end of the last call.

    A task that is held up gets one mail, not one for each interval that went by.
    """

    def __init__(
        self, context: OperatorContext, interval_ms: int, action: Callable[[], Work]
    ) -> None:
        self._context = context
        self._interval_ms = interval_ms
        self._action = action
        self._call: ScheduledCall | None = None
        self._stopped = False

    def start(self) -> None:
        """Schedules the first call; an interval of 0 means never."""
        if self._interval_ms > 0 and not self._stopped:
            due_ms = self._context.clock.now_ms() + self._interval_ms
            self._call = self._context.clock.call_at(due_ms, self._due)

    def stop(self) -> None:
        """No more calls."""
        self._stopped = True
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _due(self) -> None:
        self._call = None
        self._context.send_mail(self._run)

    def _run(self) -> Work:
        if self._stopped:
            return
        yield from self._action()
        self.start()
