"""Bounded waiting on things outside this process.

The only place of the package that reads the clock or sleeps: the broker is an
operating-system process beside the job runtime, whose clock is not at hand here.
"""

import time
from collections.abc import Callable

_PAUSE_SECONDS = 0.02


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Ask ``condition`` until it holds, for at most ``seconds``; return whether it held.

    The condition is asked at least once, and once more after the time is over, so
    that a machine which stalls for the whole time still gets a true answer.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(_PAUSE_SECONDS)
    return condition()
