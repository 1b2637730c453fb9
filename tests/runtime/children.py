"""The child processes of this one, dead ones that nobody reaped included."""

from __future__ import annotations

import os
from pathlib import Path


def children() -> set[int]:
    """Their pids; a session's broker may be among them, so tests compare before and after."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except (FileNotFoundError, ProcessLookupError):
            # It ended while the folder was listed.
            continue
        # The name in parentheses may hold anything; state and parent follow it.
        if int(text.rpartition(")")[2].split()[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found
