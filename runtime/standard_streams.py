"""Standard input, output and error of a process that was started without one of them."""

from __future__ import annotations

import os
import sys

_STANDARD_DESCRIPTORS = (0, 1, 2)


def open_standard_streams() -> None:
    """Gives descriptors 0 to 2 that are closed (`>&-`) to the null device.

    The next files opened would take their numbers, and libuv aborts the process when it is to
    close one of those.
    """
    for descriptor in _STANDARD_DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is given out, which is this one.
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        # Python sets the stream of a closed descriptor to None.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - stays open
