"""How many records a task takes at once: learnt from how long they took."""

from __future__ import annotations

FIRST_RECORDS = 32
"""A task starts with small units of work, because it does not know how slow user code is."""


class UnitSize:
    """Doubles while whole units take less than a quarter of a turn, halves when one takes more.

    So a function that takes 10 ms a record gets its records one by one, and mail, timers and
    barriers come in between; a fast one gets them by the thousand.
    """

    __slots__ = ("_most", "_turn_seconds", "fixed", "records")

    def __init__(self, most: int, turn_seconds: float) -> None:
        self._most = most
        self._turn_seconds = turn_seconds
        self.fixed = most == 1
        """Whether there is nothing to learn."""
        self.restart()

    def restart(self) -> None:
        """Begins anew with small units, because the next ones may take longer than the last.

        After a fork the first write to each page copies it: a unit of 1,000 records over a big
        state took 20 ms instead of 1.
        """
        self.records = min(FIRST_RECORDS, self._most)

    def learn(self, records: int, seconds: float) -> None:
        """A unit of `records` took `seconds`."""
        if seconds > self._turn_seconds:
            self.records = max(1, min(records, self.records) // 2)
        elif records >= self.records and seconds < self._turn_seconds / 4:
            self.records = min(self._most, self.records * 2)
