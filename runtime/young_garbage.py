"""Short garbage collections at the ends of loop turns, instead of rare and long ones.

The collector starts a pass by a count of allocations less deallocations. A job that replaces the
lists in its state allocates as much as it frees, so the count stands still while the young
generation fills with survivors; measured: no pass over 1,000,000 replaced lists, then one that
stopped everything for 0.5 s. So the young generations are looked through here by time.

What survives once is not looked at again. Where survivors are scattered over a big state a pass
costs 0.4 to 0.9 us for each; above a share of the time, passes over them are skipped: what is
young then leaves the collector's sight unseen. That is done only as long as passes find nothing,
so that a job which makes garbage with cycles has all of it collected.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

PERIOD_SECONDS = 0.020
"""Time between two passes while the loop works; less where a pass takes long."""

PERIOD_SECONDS_MIN = 0.004

PASS_SECONDS = 0.005
"""How long a pass should take at most."""

YOUNG_MAX = 7_000
"""New objects after which a pass comes before its time: the collector's own passes, which would
follow at 10,000 (`process_settings.py`), are neither measured here nor skipped."""

SHARE_MAX = 0.05
"""Share of the time for passes, above which some are skipped."""

SKIPS_MAX = 50
"""At least one period in so many is looked through."""


class YoungGarbage:
    """Decides at the end of each turn whether it is time for a pass.

    `collect` looks through the young generations and gives the number of objects found to be
    garbage, `forget` takes all that is there out of the collector's sight at no cost, `young` is
    how many came to be since (less those that are gone).
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        *,
        collect: Callable[[], int] = lambda: gc.collect(1),
        forget: Callable[[], None] = gc.freeze,
        young: Callable[[], int] = lambda: gc.get_count()[0],
    ) -> None:
        self._monotonic = monotonic
        self._collect = collect
        self._forget = forget
        self._young = young
        self._last = self._next = monotonic()
        self._period = PERIOD_SECONDS
        self._skips = 0

    def turn_ended(self) -> None:
        """Makes a pass, or skips one, if the last is long enough ago."""
        now = self._monotonic()
        if now < self._next and self._young() < YOUNG_MAX:
            return
        if self._skips:
            self._skips -= 1
            self._forget()
        else:
            found = self._collect()
            took = self._monotonic() - now
            self._learn(took, now - self._last, found)
            now += took
        self._last = now
        self._next = now + self._period

    def _learn(self, took: float, since: float, found: int) -> None:
        # A loop that slept had less time to make survivors than it seems: the period counts.
        share = took / max(PERIOD_SECONDS_MIN, min(since, self._period))
        self._skips = 0 if found else min(SKIPS_MAX, int(share / SHARE_MAX))
        wanted = self._period * PASS_SECONDS / max(took, 1e-6)
        self._period = min(PERIOD_SECONDS, max(PERIOD_SECONDS_MIN, wanted))
