"""Style as a test: the rules of tests/tidy applied to every file of this repository."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tidy import seam_rules, source_rules, text_rules
from tests.tidy.exceptions import EXCEPTIONS
from tests.tidy.violation import Violation

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("statebackends", "operators", "connectors", "runtime")
FOLDERS = (*PACKAGES, "examples", "tests", "benchmarks", "docs", ".ci")
TEXT_SUFFIXES = frozenset({"", ".cfg", ".md", ".py", ".pyi", ".sh", ".toml", ".yaml", ".yml"})


def repository_files() -> Iterator[str]:
    """Yield the text files of the repository as posix paths from its root."""
    candidates = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        candidates.extend(path for path in (ROOT / folder).rglob("*") if path.is_file())
    for path in sorted(candidates):
        relative = path.relative_to(ROOT)
        if "__pycache__" not in relative.parts and path.suffix in TEXT_SUFFIXES:
            yield relative.as_posix()


def count_lines(path: str) -> int | None:
    """The number of lines of a file, 0 for a folder, None for nothing."""
    target = ROOT / path
    if target.is_dir():
        return 0
    return len(target.read_text("utf-8").splitlines()) if target.is_file() else None


def violations_of_source(path: str, text: str) -> Iterator[Violation]:
    """Apply to one Python file the rules that hold in its folder."""
    tree = ast.parse(text, path)
    yield from source_rules.file_length(path, text)
    yield from source_rules.function_length(path, tree)
    yield from source_rules.vague_names(path, tree)
    yield from source_rules.swallowed_errors(path, tree)
    if path.startswith(PACKAGES):
        yield from source_rules.public_docstrings(path, tree)
        yield from seam_rules.seams(path, tree)
    if path.startswith("tests/"):
        yield from source_rules.facts_of_tests(path, tree)
        yield from seam_rules.sleeps(path, tree)


def violations_of_file(path: str) -> Iterator[Violation]:
    """Apply every rule that concerns this file."""
    text = (ROOT / path).read_text("utf-8")
    yield from text_rules.forbidden_words(path, text)
    if path.endswith(".py"):
        yield from text_rules.unreasoned_ignores(path, text)
        yield from violations_of_source(path, text)
    if path.endswith(".md"):
        yield from text_rules.broken_links(path, text, count_lines)
    if path == "ARCHITECTURE.md":
        modules = frozenset(Path(name).name for name in repository_files())
        yield from text_rules.walk_files(path, text, count_lines, modules)


@cache
def all_violations() -> tuple[Violation, ...]:
    """Everything found in the repository, exceptions included."""
    return tuple(found for path in repository_files() for found in violations_of_file(path))


def is_excepted(violation: Violation) -> bool:
    """Whether the list of exceptions names this place for this rule."""
    return any((violation.rule, place) in EXCEPTIONS for place in violation.places)


def test_the_repository_keeps_its_style() -> None:
    """No file breaks a rule outside the reasoned exceptions."""
    broken = [str(violation) for violation in all_violations() if not is_excepted(violation)]

    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.parametrize("exception", EXCEPTIONS, ids=":".join)
def test_an_exception_is_needed_and_reasoned(exception: tuple[str, str]) -> None:
    """An exception that no longer excuses anything is removed, and each has a sentence."""
    rule, place = exception
    used = any(found.rule == rule and place in found.places for found in all_violations())

    assert used, f"{rule} is not broken at {place}: remove the exception"
    assert len(EXCEPTIONS[exception].split()) >= 5


def test_the_files_of_all_packages_are_seen() -> None:
    """The search for files reaches each package, so an empty result means a clean one."""
    seen = set(repository_files())

    assert {f"{package}/__init__.py" for package in PACKAGES} <= seen
    assert {"README.md", "pyproject.toml", "Makefile", "tests/test_tidy.py"} <= seen
