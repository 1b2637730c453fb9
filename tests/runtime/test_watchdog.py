"""A blocked event loop is noticed, and the report says where."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from operators.elements import RecordBatch
from operators.source import InputStatus, SplitBatch
from operators.stateless import MapOperator
from operators.stream_operator import StreamOperator, Work
from runtime.clock import SystemClock
from runtime.watchdog import BlockedLoopWatchdog
from tests.job_process import JobFolder
from tests.runtime.chain_parts import Custom, Relay, barrier, batch
from tests.runtime.task_rig import Items, TaskRig, reading, settle

SECONDS = 10
LIMIT = 0.1

HOLDS_THE_LOCK = """
import ctypes, functools, sys
import runtime.job
from runtime import StreamExecutionEnvironment

# The times are no options of a job; those in force are too long for a test.
runtime.job.BlockedLoopWatchdog = functools.partial(
    runtime.job.BlockedLoopWatchdog, heartbeat_ms=100, dump_seconds=1.0
)


def holds_the_lock(number):
    print("holding", file=sys.stderr)
    # Unlike CDLL this keeps the interpreter lock.
    ctypes.PyDLL(None).sleep(3)
    print("let go", file=sys.stderr)
    return number


env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(holds_the_lock).print()
env.execute()
"""


class Reports(logging.Handler):
    """Keeps what the watchdog says, and lets blocked code go on once it has."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.reported = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.reported.set()

    def block(self) -> None:
        """What a blocking call of user code does: it keeps the loop until it is reported."""
        assert self.reported.wait(SECONDS), "nobody noticed"


@pytest.fixture
def reports() -> Iterator[Reports]:
    handler = Reports()
    logger = logging.getLogger("runtime.watchdog")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def watched(rig: TaskRig, **options: Any) -> BlockedLoopWatchdog:
    attempt = SimpleNamespace(nodes=rig.task.nodes)
    options = {"heartbeat_ms": 5, "blocked_seconds": LIMIT, **options}
    return BlockedLoopWatchdog(SystemClock(), attempt, **options)


def named(*operators: StreamOperator) -> TaskRig:
    """A task whose operators are called first, second, ..."""
    rig = TaskRig(*operators)
    for node, name in zip(rig.task.nodes, ("first", "second", "third"), strict=False):
        node.context.operator_name = name
    return rig


async def report_of(reports: Reports, rig: TaskRig, act: Callable[[], object]) -> str:
    """Runs the task until something in it has blocked and was reported."""
    async with rig.running():
        with watched(rig):
            act()
            await settle()
    assert len(reports.texts) == 1
    return reports.texts[0]


async def test_a_blocking_function_is_named_with_its_line(reports: Reports) -> None:
    """The operator, the file and the line, within the limit."""

    def waits_for_a_server(one: RecordBatch) -> Work:
        reports.block()  # the blocking line
        return (one,)

    rig = named(Relay(), Custom(waits_for_a_server), Relay())
    text = await report_of(reports, rig, lambda: rig.put(batch(1)))
    assert "blocked for 0.1 s in operator 'second'" in text
    assert Path(__file__).name in text
    assert "reports.block()  # the blocking line" in text


async def test_deep_calls_of_a_library_do_not_hide_the_users_line(reports: Reports) -> None:
    """The report begins where user code begins, and ends where it stands."""

    def library(depth: int) -> None:
        if depth:
            library(depth - 1)
        else:
            reports.block()

    def calls_a_library(one: RecordBatch) -> Work:
        library(30)  # the user's line
        return (one,)

    rig = named(Custom(calls_a_library))
    text = await report_of(reports, rig, lambda: rig.put(batch(1)))
    assert "library(30)  # the user's line" in text
    assert "threading.py" in text
    assert len(text.splitlines()) < 30


async def test_work_that_is_suspended_is_not_blamed(reports: Reports) -> None:
    """Another operator may be in the midst of its work and wait."""

    def suspended(one: RecordBatch) -> Work:
        yield one
        yield one

    def block() -> Work:
        reports.block()
        return ()

    rig = TaskRig(Relay(), Custom(suspended), capacity=1)
    async with rig.running():
        with watched(rig):
            rig.put(batch(1))
            await settle()
            assert rig.task.nodes[1].busy
            rig.timer(block)
            await settle()
    assert "operator 'Relay'" in reports.texts[0]


@pytest.mark.parametrize("blocking", [0, 1, 2])
async def test_one_of_several_fused_functions_is_named(reports: Reports, blocking: int) -> None:
    """Though they share a loop."""

    def step(number: int) -> Callable[[object], object]:
        def call(value: object) -> object:
            if number == blocking:
                reports.block()
            return value

        return call

    rig = named(*(MapOperator(step(number)) for number in range(3)))
    text = await report_of(reports, rig, lambda: rig.put(batch(1)))
    assert f"operator '{('first', 'second', 'third')[blocking]}'" in text


async def test_a_blocking_source_is_named(reports: Reports) -> None:
    """Reading is user code as well where the source is the user's."""

    class Blocking(Items):
        def next(self) -> SplitBatch | InputStatus:
            reports.block()
            return InputStatus.NOTHING_AVAILABLE

    source = Blocking()
    rig = named(reading(source), Relay())
    reader_poll = source.create_reader

    def create_reader(context: Any) -> Any:
        reader = reader_poll(context)
        reader.poll = lambda records_max: source.next()
        return reader

    source.create_reader = create_reader  # type: ignore[method-assign]  # a reader that blocks
    text = await report_of(reports, rig, lambda: None)
    assert "operator 'first'" in text


async def test_blocking_while_told_about_a_checkpoint_is_named(reports: Reports) -> None:
    """Not the head of the chain but the operator that was told."""

    class Told(Relay):
        def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
            reports.block()

    rig = named(Relay(), Told())
    text = await report_of(reports, rig, lambda: rig.task.notify_complete(1))
    assert "operator 'second'" in text


async def test_one_blockage_is_reported_once(reports: Reports) -> None:
    """However long it lasts; the next one is another."""
    tick = threading.Event()

    def block(one: RecordBatch) -> Work:
        reports.block()
        # Several limits long; nobody sets it.
        tick.wait(4 * LIMIT)
        return (one,)

    rig = named(Custom(block))
    async with rig.running():
        with watched(rig):
            rig.put(batch(1))
            await settle()
            assert len(reports.texts) == 1
            reports.reported.clear()
            turned = asyncio.Event()
            SystemClock().call_at(SystemClock().now_ms() + 20, turned.set)
            await turned.wait()
            rig.put(batch(2))
            await settle()
    assert len(reports.texts) == 2


async def test_a_loop_that_turns_is_not_reported(reports: Reports) -> None:
    """Work in short turns is no blockage, nor is an idle loop."""
    rig = named(Relay())
    ended = asyncio.Event()
    clock = SystemClock()
    clock.call_at(clock.now_ms() + 600, ended.set)
    async with rig.running():
        with watched(rig, blocked_seconds=0.5):
            rig.put(batch(1), barrier(1))
            await ended.wait()
    assert reports.texts == []


async def test_a_watchdog_that_is_off_has_no_thread(reports: Reports) -> None:
    """A simulated job has a clock of its own."""
    before = threading.active_count()
    with watched(named(Relay()), enabled=False):
        assert threading.active_count() == before


async def test_the_thread_ends_with_the_attempt(reports: Reports) -> None:
    """Restarts do not pile up threads."""
    before = threading.active_count()
    with watched(named(Relay())):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_c_code_that_keeps_the_interpreter_lock_is_located(tmp_path: Path) -> None:
    """The stack is dumped while no thread of ours can run, with the user's line; the job lives."""
    folder = JobFolder(tmp_path)
    folder.write(HOLDS_THE_LOCK)
    ended = folder.run()
    assert (ended.code, ended.out) == (0, "1\n"), ended.err
    while_held = ended.err.partition("holding\n")[2].partition("let go\n")[0]
    line = HOLDS_THE_LOCK.splitlines().index("    ctypes.PyDLL(None).sleep(3)") + 1
    assert f'File "{folder.job}", line {line} in holds_the_lock' in while_held
