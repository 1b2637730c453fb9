"""What others want of a task: closures it runs itself, between two elements."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from runtime.turn import Wakeup


@dataclass(frozen=True, slots=True)
class Mail:
    """One request to a task.

    `run` is called by the task; what it returns (or None) is work that the task drives like any
    other. `between_records` mail (a timer that is due) is served also while a unit of work is
    suspended between two records; all other mail waits for the end of that work. `at_once` mail
    (a failure) waits for nothing: what is suspended may never go on.
    """

    run: Callable[[], Generator[None, None, None] | None]
    between_records: bool = False
    at_once: bool = False


class Mailbox:
    """A task's queue of mail; whoever puts mail in wakes the task."""

    __slots__ = ("_wakeup", "closed", "mails")

    def __init__(self, wakeup: Wakeup) -> None:
        self.mails: deque[Mail] = deque()
        """What waits; public because the task looks at it between any two steps."""
        self._wakeup = wakeup
        self.closed = False

    def put(self, mail: Mail) -> None:
        """Adds mail; dropped after the task's end."""
        if not self.closed:
            self.mails.append(mail)
            self._wakeup.wake()

    def put_first(self, mail: Mail) -> None:
        """Adds mail before all other (`at_once` mail)."""
        if not self.closed:
            self.mails.appendleft(mail)
            self._wakeup.wake()

    def take(self, *, between_records: bool = False) -> Mail | None:
        """The oldest mail, or with `between_records` the oldest of that kind."""
        mails = self.mails
        if not mails:
            return None
        if not between_records:
            return mails.popleft()
        for index, mail in enumerate(mails):
            if mail.between_records:
                del mails[index]
                return mail
        return None

    def close(self) -> None:
        """Drops what is left and what is still to come."""
        self.closed = True
        self.mails.clear()
