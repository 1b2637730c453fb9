"""Rules over the syntax tree of one Python file: lengths, names, docstrings, handlers."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy.violation import Violation

FILE_LINES_MAX = 400
EXAMPLE_LINES_MAX = 80
FUNCTION_LINES_MAX = 70
VAGUE_MODULES = frozenset({"utils", "util", "helpers", "helper", "common", "base", "misc"})
VAGUE_CLASS_WORDS = frozenset({"Manager", "Helper", "Util", "Utils", "Impl", "Base"})
# Decorators after which the documentation stands elsewhere: at the contract or at the getter.
DOCUMENTED_ELSEWHERE = frozenset({"override", "overload", "setter", "deleter"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition, bool]]:
    """Yield (qualified name, node, inside a function) of each class and function."""
    inside = isinstance(tree, Function)
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            name = f"{prefix}{node.name}"
            yield name, node, inside
            for inner, child, nested in definitions(node, f"{name}."):
                yield inner, child, inside or nested
        else:
            # A definition may stand inside an if or a try.
            for inner, child, nested in definitions(node, prefix):
                yield inner, child, inside or nested


def file_length(path: str, text: str) -> Iterator[Violation]:
    """No file is longer than a reader can hold."""
    limit = EXAMPLE_LINES_MAX if path.startswith("examples/") else FILE_LINES_MAX
    lines = len(text.splitlines())
    if lines > limit:
        yield Violation("file-length", path, 1, f"{lines} lines, at most {limit}")


def function_length(path: str, tree: ast.Module) -> Iterator[Violation]:
    """No function is longer than a screen, its docstring aside."""
    for name, node, _ in definitions(tree):
        if isinstance(node, Function):
            lines = _lines(node) - (_lines(node.body[0]) if ast.get_docstring(node) else 0)
            if lines > FUNCTION_LINES_MAX:
                message = f"{name} has {lines} lines, at most {FUNCTION_LINES_MAX}"
                yield Violation("function-length", path, node.lineno, message, name)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def vague_names(path: str, tree: ast.Module) -> Iterator[Violation]:
    """Modules and classes are named by what they are."""
    pure = PurePosixPath(path)
    for part in (*pure.parent.parts, pure.stem):
        if part.strip("_") in VAGUE_MODULES:
            yield Violation("vague-name", path, 1, f"{part!r} says nothing about what is inside")
    for name, node, _ in definitions(tree):
        if isinstance(node, ast.ClassDef):
            for word in re.findall(r"[A-Z][a-z]*", node.name):
                if word in VAGUE_CLASS_WORDS:
                    message = f"class {name}: {word!r} names no role"
                    yield Violation("vague-name", path, node.lineno, message, name)


def public_docstrings(path: str, tree: ast.Module) -> Iterator[Violation]:
    """Each public module, class, function and method says what it is."""
    if not ast.get_docstring(tree):
        yield Violation("docstring", path, 1, "the module has no docstring")
    for name, node, nested in definitions(tree):
        private = any(part.startswith("_") for part in name.split("."))
        if nested or private or _documented_elsewhere(node):
            continue
        if not ast.get_docstring(node):
            yield Violation("docstring", path, node.lineno, f"{name} has no docstring", name)


def _documented_elsewhere(node: Definition) -> bool:
    marks = {
        mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", "")
        for mark in node.decorator_list
    }
    return bool(marks & DOCUMENTED_ELSEWHERE)


def facts_of_tests(path: str, tree: ast.Module) -> Iterator[Violation]:
    """Each test states its fact in a sentence."""
    for name, node, nested in definitions(tree):
        is_test = isinstance(node, Function) and node.name.startswith("test_")
        if is_test and not nested and not ast.get_docstring(node):
            yield Violation("test-docstring", path, node.lineno, f"{name} states no fact", name)


def swallowed_errors(path: str, tree: ast.Module) -> Iterator[Violation]:
    """No handler catches everything unnamed, and none says nothing about what it caught."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                yield Violation("bare-except", path, node.lineno, "an except without a class")
            if all(_is_nothing(statement) for statement in node.body):
                message = "an except that does nothing; use contextlib.suppress on a narrow class"
                yield Violation("swallowed-error", path, node.lineno, message)
        elif isinstance(node, ast.Call) and _name(node.func) == "suppress":
            for caught in node.args:
                if _name(caught) in {"Exception", "BaseException"}:
                    message = "suppress of every exception"
                    yield Violation("swallowed-error", path, node.lineno, message)


def _is_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
