"""Rules that keep time and randomness behind their seams: who reads the clock, sleeps or rolls."""

import ast
from collections.abc import Iterator

from tests.tidy.violation import Violation

CLOCK_FILE = "runtime/clock.py"
CLOCK_READS = frozenset(
    {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"}
    | {"datetime.date.today"}
)
UNSEEDED = frozenset({"uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom"})
LOOP_TIMERS = frozenset({"time", "call_later", "call_at"})
LOOP_GETTERS = frozenset({"asyncio.get_running_loop", "asyncio.get_event_loop"})


def seams(path: str, tree: ast.Module) -> Iterator[Violation]:
    """Only the clock module reads the time or sleeps; randomness has a seed."""
    if path != CLOCK_FILE:
        finder = _Finder(path)
        finder.visit(tree)
        yield from finder.found


def sleeps(path: str, tree: ast.Module) -> Iterator[Violation]:
    """No test waits for time to pass; asyncio.sleep(0) only gives way to the other tasks."""
    for violation in seams(path, tree):
        if violation.rule == "sleep":
            yield violation


class _Finder(ast.NodeVisitor):
    """Resolves names through the file's imports, so that aliases hide nothing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[Violation] = []
        self._imported: dict[str, str] = {}
        self._scope: list[str] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self._imported[alias.asname] = alias.name
            else:
                root = alias.name.partition(".")[0]
                self._imported[root] = root

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_scope(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_scope(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_scope(node)

    def _visit_scope(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()

    def visit_Call(self, node: ast.Call) -> None:
        called = self._resolve(node.func)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if called == "asyncio.sleep" and _is_zero(node):
            return
        if called == "random.Random" and not arguments:
            self._report("unseeded", node, "random.Random() without a seed")
        self.visit(node.func)
        for argument in arguments:
            self.visit(argument)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in LOOP_TIMERS and self._is_loop(node.value):
            self._report("clock", node, f"{ast.unparse(node)} goes past the clock")
        elif not self._check(node):
            self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        self._check(node)

    def _check(self, node: ast.Attribute | ast.Name) -> bool:
        name = self._resolve(node)
        module, _, member = name.partition(".")
        if name in {"asyncio.sleep", "time.sleep"}:
            self._report("sleep", node, f"{name}: only the clock sleeps")
        elif name in CLOCK_READS or (module == "time" and member):
            self._report("clock", node, f"{name} reads the clock")
        elif name in UNSEEDED or (module == "secrets" and member):
            self._report("unseeded", node, f"{name} cannot be replayed")
        elif module == "random" and member not in {"", "Random"}:
            self._report(
                "unseeded", node, f"{name} has no seed of its own; use random.Random(seed)"
            )
        return bool(name)

    def _resolve(self, node: ast.expr) -> str:
        """The dotted name behind an expression; empty unless it begins with an import."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def _is_loop(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return self._resolve(node.func) in LOOP_GETTERS
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return name.lstrip("_") in {"loop", "event_loop"}

    def _report(self, rule: str, node: ast.expr, message: str) -> None:
        symbol = ".".join(self._scope)
        self.found.append(Violation(rule, self.path, node.lineno, message, symbol))


def _is_zero(node: ast.Call) -> bool:
    first = node.args[0] if node.args else None
    return isinstance(first, ast.Constant) and first.value == 0
