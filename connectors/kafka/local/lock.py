"""A lock between processes, held on a file, waited for within bounds."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from connectors.kafka.local.failures import ExitCode, LocalBrokerError
from connectors.kafka.local.waiting import wait_until


@contextmanager
def exclusive(path: Path, seconds: float, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold ``path`` locked; ``on_wait`` is called once where another process has it.

    The kernel frees the lock when its holder ends, however it ends.  Raises
    :class:`LocalBrokerError` (START_UNDER_WAY) where it is not free after ``seconds``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _try_lock(file):
            on_wait()
            if not wait_until(lambda: _try_lock(file), seconds):
                raise LocalBrokerError(
                    ExitCode.START_UNDER_WAY,
                    f"another process has held {path} for {seconds:.0f} s: wait for it or end it",
                )
        yield


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
