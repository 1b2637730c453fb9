"""The walk of ARCHITECTURE.md leads through code that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
LINES_MAX = 120
"""About two printed pages."""

FILE = r"(?:operators|connectors|runtime|statebackends|examples)/[\w/]+\.py"
ROWS = re.findall(rf"^\| \d+ \| `({FILE})` \| ([^|]+) \|", ARCHITECTURE, re.MULTILINE)
STEPS = re.findall(rf"^\d+\. `({FILE})`, ((?:`[\w.]+`(?:,| and)? ?)+)", ARCHITECTURE, re.MULTILINE)
STOPS = [(file, name) for file, names in ROWS + STEPS for name in re.findall(r"`([\w.]+)`", names)]


def defined_names(file: str) -> set[str]:
    """Functions, classes and methods (`Class.method`) that a file defines."""
    names: set[str] = set()
    for node in ast.parse((ROOT / file).read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if hasattr(each, "name"))
            names.update(f"{node.name}.{method.name}" for method in methods)
    return names


@pytest.mark.parametrize(("file", "name"), STOPS)
def test_a_stop_of_the_walk_is_defined_where_it_says(file: str, name: str) -> None:
    """The function or class to read is in the file."""
    assert name in defined_names(file)


def test_every_row_of_the_walk_is_checked() -> None:
    """Each numbered row of the table names a file and what to read in it."""
    numbers = [int(n) for n in re.findall(r"^\| (\d+) \|", ARCHITECTURE, re.MULTILINE)]
    assert numbers == list(range(1, len(ROWS) + 1))


def test_the_architecture_has_two_pages_at_most() -> None:
    """A newcomer reads it in one go."""
    assert len(ARCHITECTURE.splitlines()) <= LINES_MAX
