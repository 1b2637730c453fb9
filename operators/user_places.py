"""Where a user function stands, for failures whose traceback does not lead there."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path

_OURS = frozenset({"statebackends", "operators", "connectors", "runtime"})


def place_of(function: object) -> str:
    """`name at file.py:12` of a function, or of the class of an object; empty if not known.

    What only wraps a user's function (and says so by `__wrapped__`, as decorators do) stands for
    that one. The runtime's own functions have no place: a user could not look for a mistake there.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__wrapped__", function)
    described = function if inspect.isroutine(function) else type(function)
    if str(getattr(described, "__module__", "")).partition(".")[0] in _OURS:
        return ""
    name = getattr(described, "__qualname__", "")
    try:
        _, line = inspect.getsourcelines(described)
        file = inspect.getsourcefile(described)
    except (OSError, TypeError):
        # Python's own, or code that no file holds.
        return ""
    return f"{name.rpartition('<locals>.')[2]} at {Path(file or '').name}:{line}"
