"""The time budget of one turn of the event loop, shared by all tasks of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TURN_SECONDS = 0.002
"""How long the tasks of one loop may work, together, before they let the loop turn."""

OVERTIME_RECORDS_MAX = 256
"""What a task that finds the turn over may still do before it yields."""


class LoopTurn:
    """Knows when the present turn of the loop is over.

    With a budget per task the loop would come round after tasks x budget; so the budget belongs
    to the turn. A marker callback ends the turn; it is armed only by a task that works, so an
    idle loop sleeps.
    """

    __slots__ = ("_armed", "_call_soon", "_on_turn", "end", "monotonic", "seconds")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        *,
        seconds: float = TURN_SECONDS,
        on_turn: Callable[[], None] | None = None,
    ) -> None:
        self._call_soon = loop.call_soon
        self.monotonic = monotonic
        self._on_turn = on_turn
        self._armed = False
        self.end = 0.0
        """When the present turn is over, by `monotonic`."""
        self.seconds = seconds

    def enter(self) -> None:
        """A task starts or goes on working: opens a turn if none is open."""
        if not self._armed:
            self._armed = True
            self.end = self.monotonic() + self.seconds
            self._call_soon(self._close)

    def over(self) -> bool:
        """Whether the budget of the present turn is used up."""
        return self.monotonic() >= self.end

    def _close(self) -> None:
        self._armed = False
        if self._on_turn is not None:
            self._on_turn()
