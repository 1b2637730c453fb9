"""Where a user function stands, for failures whose traceback does not lead there."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path


def place_of(function: object) -> str:
    """`name at file.py:12` of a function, or of the class of an object; empty if not known."""
    while isinstance(function, functools.partial):
        function = function.func
    described = function if inspect.isroutine(function) else type(function)
    name = getattr(described, "__qualname__", "")
    try:
        _, line = inspect.getsourcelines(described)
        file = inspect.getsourcefile(described)
    except (OSError, TypeError):
        # Python's own, or code that no file holds.
        return ""
    return f"{name.rpartition('<locals>.')[2]} at {Path(file or '').name}:{line}"
