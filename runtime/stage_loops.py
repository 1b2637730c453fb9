"""Generates the loop over the functions of neighbouring maps and filters.

The loop calls the functions, or has their expressions in place of the calls where all of them
have one (`expressions.py`) and come from one file. Then it runs under that file's name, with its
global names and each expression at its place: a traceback shows the line that a call would show.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

from runtime.expressions import Expression, Position, expression_of, inner_codes
from runtime.failure_report import in_standard_library

Untimed: TypeAlias = Callable[[Iterable[object]], list[object]]
Timed: TypeAlias = Callable[
    [Iterable[tuple[object, int | None]]], tuple[list[object], list[int | None]]
]

_Extent: TypeAlias = tuple[Position, Position]
"""From where to where (exclusive) in the file."""

_SOURCE = """
def make({outer}):
    def untimed(records{given}):
        out = []
        for {first} in records:
            {stages}
            out.append({last})
        return out
    def timed(records{given}):
        out = []; times = []
        for {first}, t in records:
            {stages}
            out.append({last}); times.append(t)
        return out, times
    return untimed, timed
"""
_LINES_BEFORE_STAGES = 3
_DROP_CALLED = ("if not {value}: continue",)
_DROP_IN_PLACE = ("keeps = {value}", "if not keeps: continue")
"""A condition that an expression becomes is asked for its truth once less than a result."""


@dataclass(frozen=True)
class StageLoops:
    """The loops of one run of stages, over records alone and over (record, timestamp) pairs."""

    untimed: Untimed
    timed: Timed
    extents: dict[CodeType, list[_Extent]]
    """Where the stages are in the code of each of the two."""
    variables: Sequence[str]
    """The variables in which the stages find their records."""

    def stage_at(self, code: CodeType, instruction: int) -> int | None:
        """The stage that an instruction (as in `f_lasti`) belongs to; None in other code."""
        extents = self.extents.get(code)
        if extents is None:
            return None
        line, _, column, _ = list(code.co_positions())[instruction // 2]
        place = (line or 0, column or 0)
        return next((i for i, (begin, end) in enumerate(extents) if begin <= place < end), None)


def calling(functions: Sequence[Callable[[Any], object]], filters: Sequence[bool]) -> StageLoops:
    """Loops that call the functions; `filters` says which of them only keep or drop."""
    names = [f"f{index}" for index in range(len(functions))]
    # As defaults the functions are the loop's own variables, which are the fastest to reach.
    given = "".join(f", {name}={name}" for name in names)
    variables = ["v"] * (len(names) + 1)
    calls = [f"{name}(v)" for name in names]
    source = _source(
        calls, filters, variables, drop=_DROP_CALLED, outer=", ".join(names), given=given
    )
    namespace: dict[str, Callable[..., tuple[Untimed, Timed]]] = {}
    # The source is made of the fixed text above; under this file's name, so that reports of
    # failures leave the loop out as they leave out the rest of the runtime.
    exec(compile(source, __file__, "exec"), namespace)
    untimed, timed = namespace["make"](*functions)
    extents = {}
    for code in (_code_of(untimed), _code_of(timed)):
        first = code.co_firstlineno + _LINES_BEFORE_STAGES
        lines = range(first, first + len(names))
        extents[code] = [((line, 0), (line + 1, 0)) for line in lines]
    return StageLoops(untimed, timed, extents, variables)


def in_place(
    functions: Sequence[Callable[[Any], object]], filters: Sequence[bool]
) -> StageLoops | None:
    """Loops with the functions' expressions in place of calls; None if that cannot be."""
    try:
        return _in_place(functions, filters)
    except RecursionError:
        # An expression so deep that Python runs it, but walks its tree no further.
        return None


def _in_place(
    functions: Sequence[Callable[[Any], object]], filters: Sequence[bool]
) -> StageLoops | None:
    found = [expression_of(function) for function in functions]
    expressions = [expression for expression in found if expression is not None]
    cells = _shared_cells(expressions)
    if len(expressions) < len(functions) or cells is None:
        return None
    first = expressions[0]
    if in_standard_library(first.filename):
        # A traceback begins at the first line of the user's, and this would be none.
        return None
    if any(one.scope is not first.scope or one.filename != first.filename for one in expressions):
        return None
    if len({one.start for one in expressions}) < len(expressions):
        # One function twice: a failure could not be assigned.
        return None
    variables = [one.parameter for one in expressions]
    if not set(variables).isdisjoint(set().union(*(one.outer_names() for one in expressions))):
        return None
    names = [f"f{index}" for index in range(len(functions))]
    behind = [*variables, variables[-1]]
    places = [f"v{behind.index(variable)}" for variable in behind]
    module = ast.parse(_source(names, filters, places, drop=_DROP_IN_PLACE))
    placement = _Placement(
        dict(zip(places, behind, strict=True)),
        {name: one.body for name, one in zip(names, expressions, strict=True)},
    )
    placement.visit(module)
    make = module.body[0]
    assert isinstance(make, ast.FunctionDef)
    # What the expressions captured is captured by the loops.
    make.args.args = [ast.arg(name) for name in cells]
    _locate(module, first.body, placement.placed)
    compiled = compile(module, first.filename, "exec", dont_inherit=True)
    named = dict.fromkeys(one.name for one in expressions)
    name = first.name if len(named) == 1 else f"one of {', '.join(named)}"
    loops: list[Any] = []
    for code in inner_codes(compiled):
        closure = tuple(cells[variable] for variable in code.co_freevars)
        code = code.replace(co_name=name, co_qualname=name)
        loops.append(FunctionType(code, first.scope, name, None, closure))
    untimed, timed = loops
    extents = [(one.start, one.end) for one in expressions]
    codes = [loop.__code__ for loop in loops]
    return StageLoops(untimed, timed, dict.fromkeys(codes, extents), variables)


def _source(
    values: Sequence[str],
    filters: Sequence[bool],
    variables: Sequence[str],
    *,
    drop: Sequence[str],
    outer: str = "",
    given: str = "",
) -> str:
    stages = []
    for value, drops, (here, then) in zip(values, filters, pairwise(variables), strict=True):
        if drops:
            stages += [line.format(value=value) for line in drop]
            value = here
        if then != value:
            stages.append(f"{then} = {value}")
    return _SOURCE.format(
        outer=outer,
        given=given,
        first=variables[0],
        last=variables[-1],
        stages="\n            ".join(stages),
    )


def _code_of(loop: Callable[..., object]) -> CodeType:
    assert isinstance(loop, FunctionType)
    return loop.__code__


def _shared_cells(expressions: Sequence[Expression]) -> dict[str, CellType] | None:
    """The captured variables of all by name; None if a name means two things."""
    cells = {name: cell for one in expressions for name, cell in one.cells.items()}
    for expression in expressions:
        for name in expression.outer_names() & cells.keys():
            if expression.cells.get(name) is not cells[name]:
                return None
    return cells


class _Placement(ast.NodeTransformer):
    """Puts the expressions in and names the variables; the loop's own get names of no source."""

    def __init__(self, variables: dict[str, str], expressions: dict[str, ast.expr]) -> None:
        self._variables = variables
        self._expressions = expressions
        self.placed = set(expressions.values())

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = f".{node.arg}"
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        expression = self._expressions.get(node.id)
        if expression is not None:
            return expression
        node.id = self._variables.get(node.id, f".{node.id}")
        return node


def _locate(node: ast.AST, place: ast.expr, placed: set[ast.expr]) -> ast.expr:
    """Has a part of the loop be where the first expression in it is, or else the one before it.

    Gives the last expression in it.
    """
    if node in placed:
        assert isinstance(node, ast.expr)
        return node
    first = next((one for one in ast.walk(node) if one in placed), place)
    assert isinstance(first, ast.expr)
    if "lineno" in node._attributes:
        ast.copy_location(node, first)
    for child in ast.iter_child_nodes(node):
        place = _locate(child, place, placed)
    return place
