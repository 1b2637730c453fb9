"""The examples end by themselves and print what they promise."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from examples.windowed_counts import make_click

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CLICKS = 20_000
"""How many the windowed counts generate."""


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
    """Each page has its clicks of each window, by one line per window."""
    expected: Counter[tuple[str, int]] = Counter()
    for click in map(make_click, range(CLICKS)):
        expected[click["page"], click["ts"] // 10_000 * 10] += 1
    lines = [line.split() for line in printed("windowed_counts")]
    found = {(page, int(start)): int(count) for start, _, page, count in lines}
    assert found == expected
    assert len(lines) == len(found)


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
