"""One attempt: supervised as a whole, and closed in bounded time whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Token
from typing import Any

import pytest

from operators.builtin import CollectSink
from operators.sink import SinkWriter, SinkWriterContext
from operators.source import SplitEnumerator, SplitEnumeratorContext
from runtime import attempt as attempt_module
from runtime.errors import JobExecutionError
from runtime.job_result import JobStatus
from tests.runtime.job_rig import CHECKPOINTS, Job, Numbers, tries, until
from tests.runtime.traced_function import SPAN


class Discovery(SplitEnumerator):
    """Fails where it is told to; notes that it was closed."""

    def __init__(self, context: SplitEnumeratorContext, source: Discovered) -> None:
        super().__init__(context)
        self._source = source

    async def start(self) -> None:
        if self._source.failing == "start":
            raise OSError("no broker")

    async def run(self) -> None:
        if self._source.failing == "run":
            raise OSError("no broker")
        await asyncio.Event().wait()

    def snapshot_state(self) -> bytes:
        return b"{}"

    def restore_state(self, state: bytes) -> None:
        return None

    async def close(self) -> None:
        self._source.closed += 1


class Discovered(Numbers):
    def __init__(self, failing: str = "") -> None:
        super().__init__()
        self.failing = failing
        self.closed = 0

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator:
        return Discovery(context, self)


class Closing(CollectSink[Any]):
    """Its writer closes by a function of the test's."""

    def __init__(self, close: Callable[[], Any]) -> None:
        super().__init__()
        self._close = close

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[Any]:
        writer = super().create_writer(context)
        writer.close = self._close  # type: ignore[method-assign]  # the test's
        return writer


def fail(value: int) -> int:
    raise ValueError("user code")


async def test_a_failing_discovery_fails_the_job_naming_its_source() -> None:
    """A source that finds no new partitions any more must not go unnoticed."""
    source = Discovered("run")
    with pytest.raises(JobExecutionError, match=r"numbers'.*discovering splits.*no broker"):
        await Job(source=source).end()
    assert source.closed == 1


async def test_a_failing_first_discovery_fails_the_job_naming_its_source() -> None:
    """As one that fails later."""
    source = Discovered("start")
    with pytest.raises(JobExecutionError, match=r"numbers'.*discovering splits.*no broker"):
        await Job(source=source).end()
    assert source.closed == 1


async def test_a_discovery_is_closed_with_the_attempt() -> None:
    """Also where something else failed."""
    source = Discovered()
    with pytest.raises(JobExecutionError, match="user code"):
        await Job(fail, source=source).end()
    assert source.closed == 1


async def test_a_failure_of_closing_does_not_hide_the_first_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is told in the log."""

    async def close() -> None:
        raise OSError("cannot close")

    with pytest.raises(JobExecutionError, match="user code"):
        await Job(fail, sink=Closing(close)).end()
    assert "cannot close" in caplog.text
    assert "'sink'" in caplog.text


async def cancelled_within() -> None:
    """What awaiting a task of one's own gives after it was cancelled."""
    own = asyncio.ensure_future(asyncio.Event().wait())
    own.cancel()
    await own


async def test_a_cancellation_within_closing_changes_nothing_but_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first failure stays the cause, a restart comes, everything else is closed."""
    failures = [ValueError("once")]
    source = Discovered()

    def fail_once(value: int) -> int:
        if failures:
            raise failures.pop()
        return value

    sink = Closing(cancelled_within)
    job = Job(fail_once, source=source, sink=sink, checkpoints=CHECKPOINTS, restart=tries(1))
    job.start()
    await until(lambda: len(job.results) == 5 and job.checkpoint() > 0)
    job.run.request_stop()
    await job.end()
    assert job.status is JobStatus.CANCELED
    assert source.closed == 2
    assert caplog.text.count("operator 'sink'") == 2
    with pytest.raises(JobExecutionError, match="user code"):
        await Job(fail, sink=sink).end()


@pytest.mark.parametrize("failing", ["start", "run", "close"])
async def test_a_cancellation_within_a_discovery_is_its_failure(
    failing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It neither looks like a stop nor keeps the rest from being closed."""
    monkeypatch.setattr(Discovery, failing, lambda self: cancelled_within())
    if failing == "close":
        with pytest.raises(JobExecutionError, match="user code"):
            await Job(fail, source=Discovered()).end()
        assert "closing the split enumerators: CancelledError" in caplog.text
    else:
        with pytest.raises(JobExecutionError, match=r"numbers'.*discovering splits.*Cancelled"):
            await Job(source=Discovered()).end()


async def test_all_of_a_discovery_shares_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of its start is good in its run and in its close."""
    spans: list[str] = []
    tokens: list[Token[str]] = []

    async def start(self: Discovery) -> None:
        tokens.append(SPAN.set("started"))

    async def run(self: Discovery) -> None:
        spans.append(SPAN.get())
        SPAN.reset(tokens.pop())
        tokens.append(SPAN.set("runs"))
        await asyncio.Event().wait()

    async def close(self: Discovery) -> None:
        spans.append(SPAN.get())
        SPAN.reset(tokens.pop())
        spans.append(SPAN.get())

    monkeypatch.setattr(Discovery, "start", start)
    monkeypatch.setattr(Discovery, "run", run)
    monkeypatch.setattr(Discovery, "close", close)
    job = Job(source=Discovered())
    job.start()
    await until(lambda: len(job.results) == 5)
    job.run.cancel()
    await job.end()
    assert spans == ["started", "runs", "nothing"]


async def test_closing_that_hangs_keeps_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After its time the rest is closed, and the job ends with its own failure."""
    monkeypatch.setattr(attempt_module, "CLOSE_SECONDS", 0.02)
    source = Discovered()

    async def close() -> None:
        await asyncio.Event().wait()

    with pytest.raises(JobExecutionError, match="user code"):
        await Job(fail, source=source, sink=Closing(close), checkpoints=CHECKPOINTS).end()
    assert source.closed == 1
    assert "closing the operators took longer than 0.02 s" in caplog.text


async def test_a_restart_works_after_closing_that_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator of the checkpoints was halted all the same."""
    monkeypatch.setattr(attempt_module, "CLOSE_SECONDS", 0.02)
    failures = [ValueError("once")]

    async def close() -> None:
        await asyncio.Event().wait()

    def fail_once(value: int) -> int:
        if failures:
            raise failures.pop()
        return value

    job = Job(fail_once, sink=Closing(close), checkpoints=CHECKPOINTS, restart=tries(1))
    job.start()
    await until(lambda: len(job.results) == 5 and job.checkpoint() > 0)
    job.run.cancel()
    await job.end()
    assert job.status is JobStatus.CANCELED


async def test_nothing_runs_any_more_after_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """Tasks, checkpoints and discovery are all gone."""
    before = asyncio.all_tasks()
    with caplog.at_level(logging.INFO), pytest.raises(JobExecutionError):
        await Job(fail, source=Discovered(), checkpoints=CHECKPOINTS).end()
    assert asyncio.all_tasks() == before
