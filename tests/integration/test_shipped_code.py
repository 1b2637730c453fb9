"""What a job file holds and captures works in every subtask, and after a restart.

Lambdas, closures over things that nothing can copy (a lock, an open file, a database client),
classes of the job file itself and a module beside it; started from another directory.
"""

import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.job_process import JobFolder, outcome, read_until

JOB = """
import sqlite3, sys, threading
from dataclasses import dataclass
from enum import Enum
from runtime import KeyedProcessFunction, StreamExecutionEnvironment, ValueStateDescriptor
import pages

TOTAL = int(sys.argv[1])
lock = threading.Lock()
log = open("seen.log", "a", buffering=1)
database = sqlite3.connect("counts.db", isolation_level=None)
database.execute("create table if not exists counts (page text, number int, count int)")

class Kind(Enum):
    EVEN = 0
    ODD = 1

@dataclass
class Tally:
    kind: Kind
    numbers: int = 0

class Plain:
    def __init__(self):
        self.total = 0

class Count(KeyedProcessFunction):
    def __init__(self, guard):
        self.guard = guard
    def open(self, context):
        self.tally = context.get_state(ValueStateDescriptor("tally"))
        self.plain = context.get_state(ValueStateDescriptor("plain"))
    def process_element(self, number, ctx):
        tally = self.tally.value() or Tally(Kind(number % 2))
        plain = self.plain.value() or Plain()
        assert type(tally) is Tally and type(plain) is Plain and tally.kind is Kind(number % 2)
        with self.guard:
            tally.numbers += 1
            plain.total += 1
        self.tally.update(tally)
        self.plain.update(plain)
        if tally.numbers == TOTAL // 10 and plain.total == tally.numbers:
            yield ctx.get_current_key(), tally

def store(result):
    page, tally = result
    with lock:
        log.write(f"{page} {tally.numbers}\\n")
        row = (page, tally.kind.value, tally.numbers)
        database.execute("insert into counts values (?, ?, ?)", row)
    return page

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(50)
numbers = env.from_sequence(0, TOTAL - 1).uid("numbers")
pages_seen = numbers.key_by(lambda number: pages.page_of(number)).process(Count(lock)).uid("count")
pages_seen.map(store).uid("store").print().uid("out")
env.execute("shipped")
"""

HELPER = """
def page_of(number):
    return f"page-{number % 10}"
"""

PAGES = [f"page-{digit}" for digit in range(10)]


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """A job and its module in one folder, run from another."""
    home = tmp_path / "home"
    home.mkdir()
    made = JobFolder(home)
    made.write(JOB)
    (home / "pages.py").write_text(HELPER)
    made.path = tmp_path / "elsewhere"
    made.path.mkdir()
    return made


def counts(folder: JobFolder) -> list[tuple[str, int, int]]:
    """What the job put into its database."""
    with sqlite3.connect(folder.path / "counts.db") as database:
        return sorted(database.execute("select * from counts").fetchall())


def killed_after_checkpoint(process: subprocess.Popen[str]) -> None:
    """Ends a run without warning once it has a checkpoint to go on from."""
    read_until(process, "is complete")
    process.kill()
    assert outcome(process).code == -signal.SIGKILL


def test_captures_and_classes_of_the_job_file_survive_a_kill(folder: JobFolder) -> None:
    """At parallelism 2, killed, gone on from the newest checkpoint: every count is exact."""
    total = "200000"
    killed_after_checkpoint(folder.start("-p", "2", "--", total))
    assert not counts(folder)

    ended = folder.run("-p", "2", "--from", "latest", "--", total)

    assert ended.code == 0, ended.err
    assert "starts from checkpoint" in ended.err
    expected = [(page, digit % 2, 20_000) for digit, page in enumerate(PAGES)]
    assert counts(folder) == expected
    assert sorted((folder.path / "seen.log").read_text().split()[::2]) == PAGES
