"""Which functions a loop may have in place of a call."""

from __future__ import annotations

import ast
import functools
import linecache
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runtime.expressions import Expression, expression_of
from runtime.stage_loops import calling, in_place

OFFSET = 5


def named(value: int) -> int:
    """One return."""
    return value + OFFSET


def of_two_statements(value: int) -> int:
    print(value)
    return value


def generator(value: int) -> Iterator[int]:
    return (yield value)


async def coroutine(value: int) -> int:
    return value


class Holder:
    __hidden = 3

    def method(self, value: int) -> int:
        return value

    def mangled(self) -> Callable[[Any], object]:
        return lambda value: value.__hidden

    def parent(self) -> Callable[[Any], object]:
        return lambda value: super().__init__()


def _around(limit: int) -> Callable[[int], object]:
    return lambda value: value < limit


TAKEN: dict[str, Callable[..., object]] = {
    "arithmetic": lambda value: value * 2,
    "a global name": lambda value: value + OFFSET,
    "a captured variable": _around(7),
    "a call": lambda value: max(value, 3),
    "a condition": lambda value: value if value > 2 else -value,
    "no use of its parameter": lambda _: 7,
    "a function of one return": named,
    "several lines": lambda value: value + 1,
}

CALLED: dict[str, Callable[..., object]] = {
    "two parameters": lambda value, other: value,
    "a default": lambda value=1: value,
    "a keyword": lambda value, *, other=1: value,
    "any arguments": lambda *values: values,
    "a comprehension": lambda value: [one * 2 for one in range(value)],
    "a generator expression": lambda value: sum(one for one in range(value)),
    "a function inside": lambda value: sorted(value, key=lambda one: -one),
    "a new name": lambda value: (double := value * 2) + double,
    "a look at its frame": lambda value: sorted(locals()),
    "two statements": of_two_statements,
    "a generator": generator,
    "a coroutine": coroutine,
    "a bound method": Holder().method,
    "a partial": functools.partial(max, 3),
    "Python's own": str,
    "a name of a class": Holder().mangled(),
    "its parent class": Holder().parent(),
    "no source": eval("lambda value: value + 1"),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_a_function_that_gives_an_expression_back_is_taken(kind: str) -> None:
    """Lambdas and functions of one return, whatever they name."""
    function = TAKEN[kind]
    found = expression_of(function)
    assert found is not None
    assert _value(found, 4) == function(4)


@pytest.mark.parametrize("kind", CALLED)
def test_any_other_function_is_called(kind: str) -> None:
    """Where a call could do something that the expression would not."""
    assert expression_of(CALLED[kind]) is None


def test_functions_of_one_line_are_told_apart() -> None:
    """Also where they look alike."""
    functions = [lambda value: value + 1, lambda value: value + 1, lambda value: value + 10]
    found = [expression_of(function) for function in functions]
    places = [one.start for one in found if one is not None]
    assert len(set(places)) == 3


def test_a_file_that_was_changed_since_is_not_believed(tmp_path: Path) -> None:
    """The expression of the file would not be that of the function: 1 is not 1.0 either."""
    path = tmp_path / "job.py"
    path.write_text("double = lambda value: value * 1\n")
    module = ModuleType("job")
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    assert expression_of(module.double) is not None

    path.write_text("double = lambda value: value * True\n")
    linecache.checkcache(str(path))
    assert expression_of(module.double) is None

    path.write_text("double = (\n")
    linecache.checkcache(str(path))
    assert expression_of(module.double) is None


def _loaded(path: Path, source: str) -> Callable[[Any], object]:
    """The `function` of a file with this source."""
    path.write_text(source)
    module = ModuleType("job")
    exec(compile(source, str(path), "exec"), module.__dict__)
    function: Callable[[Any], object] = module.function
    return function


@pytest.mark.parametrize("terms", [300, 1_000])
def test_an_expression_may_be_deep(terms: int, tmp_path: Path) -> None:
    """Python runs it; whether it can be taken apart or not, it must not fail."""
    source = f"function = lambda value: {' + '.join(['value'] * terms)}\n"
    function = _loaded(tmp_path / "job.py", source)
    loops = in_place([function], [False]) or calling([function], [False])
    assert loops.untimed([2]) == [2 * terms]


def test_a_constant_may_be_long(tmp_path: Path) -> None:
    """Python refuses to write out very long numbers, which is no reason to fail."""
    function = _loaded(tmp_path / "job.py", f"function = lambda value: value & 0x{'f' * 4_000}\n")
    found = expression_of(function)
    assert found is not None
    assert _value(found, 12) == 12


@pytest.mark.filterwarnings("error")
def test_what_was_warned_of_is_not_warned_of_again(tmp_path: Path) -> None:
    """Least of all as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = _loaded(tmp_path / "job.py", "function = lambda value: value is 1\n")
    assert expression_of(function) is not None


def test_a_very_long_file_is_not_looked_into(tmp_path: Path) -> None:
    """To parse it would hold up the start of the job by seconds."""
    lines = "\n".join(f"x{number} = {number}" for number in range(30_000))
    function = _loaded(tmp_path / "job.py", f"{lines}\nfunction = lambda value: value + 1\n")
    assert expression_of(function) is None


def _value(expression: Expression, value: object) -> object:
    """What it gives for a value, with the names that it has."""
    names = {**expression.scope, **{n: c.cell_contents for n, c in expression.cells.items()}}
    code = compile(ast.Expression(expression.body), expression.filename, "eval")
    return eval(code, {**names, expression.parameter: value})
