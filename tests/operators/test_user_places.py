"""Where a user's function stands, and that the runtime's own are not taken for one."""

from __future__ import annotations

from functools import partial, wraps
from pathlib import Path
from typing import Any

from operators.field_reduction import sum_reduction
from operators.functions import MapFunction
from operators.keyed_functions import KeyedMap
from operators.user_places import place_of

FILE = Path(__file__).name


class Double(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return 2 * value


def add(first: int, second: int) -> int:
    return first + second


def test_a_function_has_name_file_and_line() -> None:
    """Also behind arguments that are given already."""
    line = add.__code__.co_firstlineno
    assert place_of(add) == place_of(partial(add, 1)) == f"add at {FILE}:{line}"


def test_an_object_has_the_place_of_its_class() -> None:
    """Also where the runtime wraps it in one of its own."""
    assert place_of(Double()).startswith(f"Double at {FILE}:")
    assert place_of(KeyedMap(Double())) == place_of(Double())


def test_a_decorated_function_has_its_own_place() -> None:
    """Not that of the decorator."""

    @wraps(add)
    def decorated(*arguments: Any) -> int:
        return add(*arguments)

    assert place_of(decorated) == place_of(add)


def test_a_function_of_the_runtime_has_none() -> None:
    """Nobody could look for a mistake there; the same goes for Python's own."""
    assert place_of(sum_reduction("amount")) == ""
    assert place_of(len) == ""
