"""The examples end by themselves and print what they promise."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def printed(example: str, *arguments: str) -> list[str]:
    """The lines that an example prints."""
    command = [sys.executable, "-m", "runtime", f"examples/{example}.py", "--quiet", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_words_are_counted_as_they_come() -> None:
    """Each word comes with its running count."""
    lines = printed("wordcount")
    assert lines[0] == "('the', 1)"
    assert len(lines) == 21
    assert "('the', 5)" in lines
    assert "('the', 6)" not in lines


def test_windows_hold_every_click_once() -> None:
    """The counts of all windows come to the number of clicks."""
    lines = [line.split() for line in printed("windowed_counts")]
    assert sum(int(count) for *_, count in lines) == 20_000
    assert {page for _, _, page, _ in lines} == {"home", "search", "cart", "checkout"}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_alerts_do_not_depend_on_the_parallelism(parallelism: int) -> None:
    """Each account is watched by one subtask, in the order of its payments."""
    lines = printed("fraud_detection", "-p", str(parallelism))
    alerts = Counter(line.partition("ALERT ")[2].partition(":")[0] for line in lines)
    assert alerts == {f"account-{n}": 2 for n in range(1, 5)} | {"account-0": 1}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_how_to_run_it(path: Path) -> None:
    """Its first lines name the command."""
    assert f"python -m runtime examples/{path.name}" in path.read_text()
