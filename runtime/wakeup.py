"""The one future a task waits on."""

from __future__ import annotations

import asyncio


class Wakeup:
    """Resolves a task's only wait: data, room and mail all call `wake`.

    There is no flag to remember a wake-up: task and callers share one thread, and a task looks
    at everything it could do right before it waits, so a wake-up that comes earlier is seen there.
    """

    __slots__ = ("_future", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Ends the present wait, if there is one."""
        future = self._future
        if future is not None:
            self._future = None
            if not future.done():
                future.set_result(None)

    def waiting(self) -> asyncio.Future[None]:
        """The wait for the next `wake`, to be awaited at once."""
        self._future = future = self._loop.create_future()
        return future
