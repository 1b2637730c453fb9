"""Planted reads of the clock, sleeps and dice are found under every alias."""

import ast

import pytest

from tests.tidy import seam_rules


def rules(text: str, path: str = "runtime/task.py") -> list[str]:
    """The rules that a source text breaks, in order."""
    return [one.rule for one in seam_rules.seams(path, ast.parse(text))]


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.time()",
        "import time as t\nt.monotonic_ns()",
        "from time import perf_counter\nperf_counter()",
        "from time import monotonic as now\nread = now",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.now(tz=utc)",
        "import datetime as dt\ndt.date.today()",
        "import asyncio\nasyncio.get_running_loop().time()",
        "self._loop.call_later(1, f)",
        "loop.call_at(1, f)",
    ],
)
def test_a_read_of_the_clock_is_found(text: str) -> None:
    """Aliases, from-imports, references without a call and the loop's own timers count."""
    assert rules(text) == ["clock"]


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.sleep(1)",
        "import asyncio\nasyncio.sleep(0.1)",
        "from asyncio import sleep as nap\nnap(delay)",
    ],
)
def test_a_sleep_is_found(text: str) -> None:
    """Blocking and suspending sleeps are the same breach."""
    assert rules(text) == ["sleep"]
    assert list(seam_rules.sleeps("tests/test_a.py", ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "import random\nrandom.random()",
        "from random import shuffle\nshuffle(a)",
        "import random\nrandom.Random()",
        "import random\nrandom.SystemRandom()",
        "import uuid\nuuid.uuid4()",
        "from os import urandom\nurandom(8)",
        "import secrets\nsecrets.token_hex()",
    ],
)
def test_randomness_without_a_seed_is_found(text: str) -> None:
    """The shared generator, the system's and random identifiers cannot be replayed."""
    assert rules(text) == ["unseeded"]


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\nasyncio.sleep(0)",
        "import random\nrandom.Random(7).random()",
        "import random\ndef f(dice: random.Random): ...",
        "from datetime import datetime, timedelta\ndatetime.fromtimestamp(0, utc)",
        "import uuid\nuuid.uuid5(space, name)",
        "def f(time, clock):\n    clock.time()\n    time.sleep(1)",
        "record.time",
    ],
)
def test_what_needs_no_seam_passes(text: str) -> None:
    """Giving way, seeded dice, pure conversions and other things called time are free."""
    assert rules(text) == []


def test_arguments_of_a_call_are_searched() -> None:
    """A breach inside a call's arguments is found, by position and by name."""
    text = "import time\nf(time.time(), at=time.monotonic())\n"
    assert rules(text) == ["clock", "clock"]


def test_the_symbol_of_a_breach_is_its_method() -> None:
    """An exception can be as narrow as one method."""
    tree = ast.parse("import time\nclass A:\n    async def f(self):\n        time.time()\n")
    assert [one.symbol for one in seam_rules.seams("runtime/task.py", tree)] == ["A.f"]


def test_the_clock_module_may_read_the_clock() -> None:
    """The seam itself is the one place."""
    assert rules("import time\ntime.time()", "runtime/clock.py") == []


def test_reading_the_clock_is_no_sleep() -> None:
    """Tests may measure, they may not wait."""
    tree = ast.parse("import time\ntime.perf_counter()")
    assert not list(seam_rules.sleeps("tests/test_a.py", tree))
