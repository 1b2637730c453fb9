"""When the collector passes over young objects, seen by a clock of the test's own."""

import pytest

from runtime.young_garbage import (
    PASS_SECONDS,
    PERIOD_SECONDS,
    PERIOD_SECONDS_MIN,
    SKIPS_MAX,
    YOUNG_MAX,
    YoungGarbage,
)


class Process:
    """A clock, and a collector whose passes take `pass_seconds` and find `found` objects."""

    def __init__(self, *, pass_seconds: float = 0.0, found: int = 0) -> None:
        self.now = 100.0
        self.pass_seconds = pass_seconds
        self.found = found
        self.young_per_second = 0
        self._looked_through = self.now
        self.events: list[tuple[str, float]] = []
        self.garbage = YoungGarbage(
            lambda: self.now, collect=self.collect, forget=self.forget, young=self.young
        )

    def collect(self) -> int:
        self.events.append(("pass", self.now))
        self.now += self.pass_seconds
        self._looked_through = self.now
        return self.found

    def forget(self) -> None:
        self._looked_through = self.now
        self.events.append(("skip", self.now))

    def young(self) -> int:
        return int((self.now - self._looked_through) * self.young_per_second)

    def work(self, seconds: float, *, turn: float = 0.002) -> list[str]:
        """What happened at the ends of the turns of so much work."""
        self.events.clear()
        end = self.now + seconds
        while self.now < end:
            self.now += turn
            self.garbage.turn_ended()
        return [kind for kind, _ in self.events]


def test_passes_come_by_time_however_short_the_turns() -> None:
    """Turns of 0.1 ms and of 2 ms make about as many passes."""
    for turn in (0.0001, 0.002):
        kinds = Process().work(1.0, turn=turn)
        assert set(kinds) == {"pass"}
        assert 0.8 <= len(kinds) * PERIOD_SECONDS <= 1.0


@pytest.mark.parametrize("pass_seconds", [0.0, 0.001])
def test_many_new_objects_do_not_wait_for_their_time(pass_seconds: float) -> None:
    """The collector's own pass, whose cost would not be known, would come first."""
    process = Process(pass_seconds=pass_seconds)
    process.young_per_second = 1_000_000
    kinds = process.work(1.0)
    assert len(kinds) >= 0.9 / (YOUNG_MAX / 1_000_000 + 0.002)
    assert ("skip" in kinds) is (pass_seconds > 0)


def test_long_passes_come_sooner_so_that_each_is_shorter() -> None:
    """A pass that took four times too long is followed by a shorter period."""
    process = Process(pass_seconds=PASS_SECONDS * 4, found=1)
    process.work(0.5)
    times = [at for _, at in process.events]
    assert times[-1] - times[-2] - process.pass_seconds < PERIOD_SECONDS / 2
    assert times[-1] - times[-2] - process.pass_seconds >= PERIOD_SECONDS_MIN


def test_costly_passes_that_find_nothing_are_mostly_skipped() -> None:
    """What survives unseen then is out of the collector's sight."""
    kinds = Process(pass_seconds=0.004).work(5.0)
    assert "pass" in kinds
    assert kinds.count("skip") > kinds.count("pass")
    longest = max(len(run) for run in "".join(kind[0] for kind in kinds).split("p"))
    assert longest <= SKIPS_MAX


@pytest.mark.parametrize("pass_seconds", [0.0, 0.004])
def test_nothing_is_skipped_while_there_is_garbage(pass_seconds: float) -> None:
    """A job that makes cycles has all of them collected, whatever it costs."""
    kinds = Process(pass_seconds=pass_seconds, found=10).work(2.0)
    assert set(kinds) == {"pass"}
