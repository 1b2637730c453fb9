"""Rules over plain text: forbidden words, links that lead somewhere, the files of the walk."""

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from tests.tidy.violation import Violation

# Taken apart so that this file keeps its own rule.
FORBIDDEN = {
    "an open end": r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b",
    "a reference that only its writer understands": r"\bT\d\d\b|\.\./shar" + r"ed",
    "a path of one machine": r"(?<![\w./])/wo" + r"rk/",
}
WALK_LINES_MAX = 400
_FOLDERS = "statebackends|operators|connectors|runtime|examples|tests|benchmarks|docs"
_NAMED_FILE = re.compile(rf"(?<![\w/.])(?:(?:{_FOLDERS})/[\w./-]*\w\.\w+)(?![\w/])")
_BARE_FILE = re.compile(r"`(\w+\.py)`")
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")

_IGNORE = re.compile(r"# (?:type: ignore|noqa)\b(.*)")
_REASONED = re.compile(r"(?:\[[\w, -]+\]|: *[A-Z]+\d+(?:, *[A-Z]+\d+)*) +[#-] *\w.{5,}")

LineCount = Callable[[str], int | None]
"""Gives the number of lines of a file of the repository, None if there is no such file."""


def forbidden_words(path: str, text: str) -> Iterator[Violation]:
    """Nothing is left open in the files, and they speak only of the project."""
    for number, line in enumerate(text.splitlines(), 1):
        for meaning, pattern in FORBIDDEN.items():
            for match in re.finditer(pattern, line):
                message = f"{match.group()!r} is {meaning}"
                yield Violation("forbidden-word", path, number, message)


def unreasoned_ignores(path: str, text: str) -> Iterator[Violation]:
    """Whoever silences a checker names the code and, after `#` or `-`, the reason."""
    for number, line in enumerate(text.splitlines(), 1):
        for rest in _IGNORE.findall(line):
            if not _REASONED.match(rest):
                message = "an ignore without a code and a reason"
                yield Violation("unreasoned-ignore", path, number, message)


def broken_links(path: str, text: str, count_lines: LineCount) -> Iterator[Violation]:
    """Each relative link of a document leads to something that is there."""
    folder = PurePosixPath(path).parent
    for number, line in enumerate(text.splitlines(), 1):
        for target in _LINK.findall(line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if count_lines(str(folder / target)) is None:
                yield Violation("broken-link", path, number, f"{target} is not there")


def walk_files(
    path: str, text: str, count_lines: LineCount, module_names: frozenset[str]
) -> Iterator[Violation]:
    """The files that the walk names exist, and each is short enough to be read on the way."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in _NAMED_FILE.findall(line):
            lines = count_lines(name)
            if lines is None:
                yield Violation("walk", path, number, f"{name} is not there")
            elif lines > WALK_LINES_MAX:
                message = f"{name} has {lines} lines, at most {WALK_LINES_MAX}"
                yield Violation("walk", path, number, message)
        for name in _BARE_FILE.findall(line):
            if name not in module_names:
                yield Violation("walk", path, number, f"no module is called {name}")
