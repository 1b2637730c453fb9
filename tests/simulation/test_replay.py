"""A seed is the whole run: it replays event for event, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.test_exactly_once import simulate

ROOT = Path(__file__).parents[2]
SEEDS = range(3)
PROGRAM = f"""
import logging
logging.disable(logging.CRITICAL)
from tests.simulation.test_exactly_once import simulate
print(*(simulate(seed).digest for seed in {list(SEEDS)}), sep="\\n")
"""


def test_a_seed_replays_in_the_same_process() -> None:
    """Whatever ran in between."""
    first = [simulate(seed) for seed in SEEDS]
    assert [simulate(seed) for seed in reversed(SEEDS)] == first[::-1]


@pytest.mark.parametrize("hash_seed", ["0", "1", "4711"])
def test_a_seed_replays_under_other_string_hashes(hash_seed: str) -> None:
    """No order of a set or dictionary of strings decides anything."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert ended.stdout.split() == [simulate(seed).digest for seed in SEEDS]
