"""Finds the expression that a user function gives back, so that a loop can have it in place.

A call costs Python more than most of the expressions that people map and filter with. Taken is
only what cannot be told from a call: a lambda, or a function of one `return`, of one parameter,
whose source, compiled anew, is to the byte what the function runs.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

FILES_REMEMBERED_MAX = 16
"""Files whose functions stay parsed."""

SOURCE_LENGTH_MAX = 300_000
"""Longest file that is looked into: parsing takes about a second per million characters."""

Position: TypeAlias = tuple[int, int]
"""Line and column."""

_OWN_SCOPE = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
)
"""Parts that have names of their own, or make some."""

_FRAME_READERS = frozenset({"super", "locals", "vars", "dir", "eval", "exec"})
"""Builtins that look at the variables of their caller."""

_OTHER_KINDS = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)

_Definition: TypeAlias = ast.Lambda | ast.FunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """What a function gives back, as a function of its one parameter."""

    name: str
    filename: str
    parameter: str
    body: ast.expr
    scope: dict[str, Any]
    """The function's global names."""
    cells: dict[str, CellType]
    """The variables that it shares with the function around it."""

    @property
    def start(self) -> Position:
        """Where the expression begins in its file."""
        return self.body.lineno, self.body.col_offset

    @property
    def end(self) -> Position:
        """Where it ends (exclusive)."""
        end_line, end_column = self.body.end_lineno, self.body.end_col_offset
        assert end_line is not None
        assert end_column is not None
        return end_line, end_column

    def outer_names(self) -> set[str]:
        """The names in it beside the parameter."""
        names = {node.id for node in ast.walk(self.body) if isinstance(node, ast.Name)}
        return names - {self.parameter}


def expression_of(function: Callable[..., object]) -> Expression | None:
    """The expression of `function`; None where a call could do anything else."""
    if type(function) is not FunctionType or function.__defaults__ or function.__kwdefaults__:
        return None
    code = function.__code__
    if code.co_argcount != 1 or code.co_nlocals != 1 or code.co_kwonlyargcount:
        return None
    if code.co_flags & _OTHER_KINDS or _FRAME_READERS.intersection(code.co_names):
        return None
    *_, (_, _, column, _) = code.co_positions()
    if column is None:
        # Python was told to keep no columns.
        return None
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    body = _body_of(code, source)
    if body is None:
        return None
    return Expression(
        name=code.co_name,
        filename=code.co_filename,
        parameter=code.co_varnames[0],
        body=body,
        scope=function.__globals__,
        cells=dict(zip(code.co_freevars, function.__closure__ or (), strict=True)),
    )


def _body_of(code: CodeType, source: str) -> ast.expr | None:
    """The expression in the source that the code is of."""
    if len(source) > SOURCE_LENGTH_MAX:
        return None
    # What there is to warn of in the source was said when it was run.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for definition in _definitions(source).get(code.co_firstlineno, ()):
            body = _body(definition)
            if body is not None and _same(_compiled(definition, code), code):
                return body
    return None


@lru_cache(maxsize=FILES_REMEMBERED_MAX)
def _definitions(source: str) -> dict[int, list[_Definition]]:
    """The functions of a file by their first line."""
    found: dict[int, list[_Definition]] = {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # Not the text that was run: a template, a notebook's cell, an edited file.
        return found
    for node in ast.walk(tree):
        if isinstance(node, _Definition):
            found.setdefault(node.lineno, []).append(node)
    return found


def _body(definition: _Definition) -> ast.expr | None:
    """What is given back, if that is an expression without names of its own."""
    if isinstance(definition, ast.Lambda):
        body: ast.expr | None = definition.body
    else:
        statements = definition.body
        if ast.get_docstring(definition, clean=False) is not None:
            statements = statements[1:]
        only = statements[0] if len(statements) == 1 else None
        body = only.value if isinstance(only, ast.Return) else None
    if body is None or any(isinstance(node, _OWN_SCOPE) for node in ast.walk(body)):
        return None
    return body


def _compiled(definition: _Definition, code: CodeType) -> CodeType | None:
    """The code that the definition compiles to where the same variables are around it."""
    around = ", ".join(code.co_freevars)
    module = ast.parse(f"def around({around}): return 0")
    outer = module.body[0]
    assert isinstance(outer, ast.FunctionDef)
    if isinstance(definition, ast.Lambda):
        outer.body = [ast.copy_location(ast.Return(definition), definition)]
    else:
        outer.body = [definition]
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    return next((one for one in inner_codes(compiled) if one.co_name == code.co_name), None)


def inner_codes(module: CodeType) -> Iterator[CodeType]:
    """The code of the functions within the functions of a module."""
    for outer in module.co_consts:
        if isinstance(outer, CodeType):
            yield from (one for one in outer.co_consts if isinstance(one, CodeType))


def _same(one: CodeType | None, other: CodeType) -> bool:
    if one is None or _essence(one) != _essence(other):
        return False
    return all(map(_same_constant, one.co_consts, other.co_consts))


def _same_constant(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same_constant, one, other))
    if isinstance(one, float | complex | frozenset):
        # 0.0 and -0.0 are equal, and so are sets of 1 and of True.
        return repr(one) == repr(other)
    return type(one) is type(other) and one == other


def _essence(code: CodeType) -> tuple[object, ...]:
    # The positions tell functions of a line apart, and failures are assigned by them.
    return (
        code.co_code,
        len(code.co_consts),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        list(code.co_positions()),
    )
