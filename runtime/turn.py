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
    to the turn. It is time that ends it, however often the loop has come round meanwhile; the
    next one is opened by a marker callback, put into the loop by the first task that finds the
    present one over. So all tasks that work before the loop comes round find it over, an idle
    loop sleeps, and a task that waits for single records pays for no marker.
    """

    __slots__ = ("_call_soon", "_on_turn", "_renewing", "end", "monotonic", "seconds")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        *,
        seconds: float = TURN_SECONDS,
        on_turn: Callable[[], None] | None = None,
    ) -> None:
        self._call_soon = loop.call_soon
        self._on_turn = on_turn
        self._renewing = False
        self.monotonic = monotonic
        self.end = monotonic() + seconds
        """When the present turn is over, by `monotonic`."""
        self.seconds = seconds

    def over(self) -> bool:
        """Whether the budget of the present turn is used up."""
        return self.monotonic() >= self.end

    def renew(self) -> None:
        """Has the next turn begin as soon as the loop comes round; the caller yields to it."""
        if not self._renewing:
            self._renewing = True
            self._call_soon(self._begin)

    def _begin(self) -> None:
        self._renewing = False
        if self._on_turn is not None:
            self._on_turn()
        self.end = self.monotonic() + self.seconds
