"""Settings of the interpreter while a job runs, where the process belongs to the job.

In a host's event loop (a notebook, a web server) nothing here is touched: the process is theirs.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from runtime.clock import turn_seconds
from runtime.young_garbage import YoungGarbage

SWITCH_INTERVAL_SECONDS = 0.0005
"""How soon a waiting thread gets the interpreter.

A loaded loop with short turns takes the interpreter back before a waiting thread wakes: with the
default of 5 ms threads were late by 340-450 ms at the median and over 1 s at worst, with 0.5 ms
by 1.1 and 6.8 ms. The loop's own throughput does not depend on it.
"""

GC_THRESHOLDS = (10_000, 1, 1_000_000)
"""Sizes of the collector's generations.

While the loop turns, `young_garbage.py` looks through the young ones by time; these are for work
within one turn, such as restoring state. A pass takes about 80 ns an object where objects lie
side by side and 0.4-0.9 us where they are scattered over a big state (the higher figure while a
snapshot child shares the memory): 30,000 objects at most, under 20 ms. With a middle generation
of 100,000 objects a pass took 59 ms of CPU time. The oldest holds the state of the job and is
practically never passed over: that stops everything 0.3-0.4 s for a million objects. Garbage
with cycles that has got that old stays until the job ends.
"""

_lock = threading.Lock()
_users = 0
_before: tuple[float, tuple[int, int, int]] | None = None
_young_garbage = YoungGarbage(turn_seconds)


@contextmanager
def job_process_settings() -> Iterator[None]:
    """Applies the settings while at least one job of this process is inside."""
    _enter()
    try:
        yield
    finally:
        _leave()


def turn_ended() -> None:
    """Has the collector make its passes at the ends of loop turns; not in a host's process."""
    if _users:
        _young_garbage.turn_ended()


def freeze_started_objects() -> None:
    """Takes what exists now out of the collector's sight; after a start and after a restore.

    Does nothing unless the settings are applied. No pass goes before it: that would cost a start
    over a large input 80 ns an object, for the little garbage that building a job leaves.
    Freezing alone would make passes over the oldest generation more frequent (they are measured
    against what is not frozen); with the thresholds above they do not happen.
    """
    if _users:
        gc.freeze()


def collect_old_garbage() -> None:
    """Collects what a failed attempt has left, its state above all, before the next one begins.

    It has cycles and was taken out of the collector's sight: each new start of a job would add the
    size of its state to the process. Does nothing unless the settings are applied.
    """
    if _users:
        gc.unfreeze()
        gc.collect()


def _enter() -> None:
    global _before, _users  # noqa: PLW0603 - settings of the process, not of an object
    with _lock:
        _users += 1
        if _users == 1:
            _before = (sys.getswitchinterval(), gc.get_threshold())
            sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
            gc.set_threshold(*GC_THRESHOLDS)


def _leave() -> None:
    global _before, _users  # noqa: PLW0603 - settings of the process, not of an object
    with _lock:
        _users -= 1
        if _users == 0 and _before is not None:
            sys.setswitchinterval(_before[0])
            # Sets the counts back: by the former thresholds they would start a pass over
            # everything that is thawed here, within the end of the job.
            gc.collect(1)
            # Freezing sets the collector's counts to 0: those of our passes would have it look
            # through everything as soon as the job has ended.
            gc.freeze()
            gc.set_threshold(*_before[1])
            gc.unfreeze()
            _before = None
