"""Says of a method that an object does not have what to do instead."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar


class Advising:
    """Adds to the `AttributeError` about a missing attribute what was perhaps meant."""

    __slots__ = ()

    _advice: ClassVar[Mapping[str, str]] = {}
    """What to do instead, by the name of the missing attribute."""

    if not TYPE_CHECKING:
        # A type checker that saw it would take any name for one that is there.

        def __getattr__(self, name: str) -> object:
            known = [one for one in dir(type(self)) if not one.startswith("_")]
            text = f"{type(self).__name__} has no attribute {name!r}"
            if name in self._advice:
                text = f"{text}: {self._advice[name]}"
            elif close := difflib.get_close_matches(name, known, n=1):
                text = f"{text}; did you mean {close[0]!r}?"
            raise AttributeError(text)


KEYED_FIRST = dict.fromkeys(
    ("reduce", "sum", "min", "max", "min_by", "max_by", "window"),
    "call key_by(...) directly before it",
)
"""Of a stream that is not keyed."""

NOT_YET = "is not there yet"
ELSEWHERE = {
    "add_sink": "use sink_to(...) with a Sink",
    **dict.fromkeys(
        ("connect", "count_window", "partition_custom", "project", "window_all"), NOT_YET
    ),
}
"""Of any stream: what PyFlink has under a name that is not here."""

_OF_A_STREAM = (
    *("map", "filter", "flat_map", "key_by", "union", "print", "sink_to", "execute_and_collect"),
    *("get_side_output", "name", "uid", "set_parallelism"),
)
COMPUTED_FIRST = dict.fromkeys(
    _OF_A_STREAM,
    "say first what is computed of each window: reduce, aggregate, process, apply, count",
)
"""Of a stream of windows."""

YIELDED = dict.fromkeys(
    ("output", "collect", "out"),
    "yield what is to be put out; `yield tag, value` for a side output",
)
"""Of the context of a process function.

A context has no `__getattr__`, which would make each of its calls slower: a failure says it.
"""


STATE_IN_OPEN = dict.fromkeys(
    (
        *("get_runtime_context", "get_state", "get_list_state", "get_map_state"),
        *("get_reducing_state", "get_aggregating_state"),
    ),
    "fetch state in open(self, runtime_context) and keep it in an attribute",
)
"""Of a function and of the context of a process function, for who looks there as in Java."""


def advice_about(error: BaseException) -> str:
    """What to do instead of asking an object for an attribute that it does not have."""
    if not isinstance(error, AttributeError) or error.obj is None:
        return ""
    advice: object = getattr(type(error.obj), "_advice", None)
    return str(advice.get(error.name, "")) if isinstance(advice, Mapping) else ""
