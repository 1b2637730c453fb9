"""How a run ends: by itself, by a stop, or cancelled."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from operators.builtin import CollectSink, IteratorSource
from operators.sink import SinkWriter, SinkWriterContext
from runtime.attempt import Attempt
from runtime.job_folder import InMemoryJobFolder, RunStatus
from runtime.job_result import JobStatus
from runtime.survival_settings import (
    CheckpointSettings,
    RecoverySettings,
    StopSettings,
)
from tests.runtime.job_rig import CHECKPOINTS, NO_CHECKPOINTS, Job, Numbers, tries, until


@pytest.mark.parametrize("checkpoints", [NO_CHECKPOINTS, CHECKPOINTS], ids=["without", "with"])
async def test_a_job_whose_source_ends_is_finished(checkpoints: CheckpointSettings) -> None:
    """All records are there, and the folder says so."""
    job = Job(source=IteratorSource([1, 2, 3]), checkpoints=checkpoints)
    await job.end()
    assert job.results == [1, 2, 3]
    assert job.status is JobStatus.FINISHED
    if checkpoints.enabled:
        assert job.folder.last_status() is RunStatus.FINISHED


async def test_a_stop_takes_a_final_checkpoint(caplog: pytest.LogCaptureFixture) -> None:
    """The next run goes on where this one stopped."""
    folder = InMemoryJobFolder()
    never = CheckpointSettings(interval_ms=600_000)
    first = Job(checkpoints=never, folder=folder)
    first.start()
    await until(lambda: len(first.results) == 5)
    with caplog.at_level(logging.INFO):
        first.run.request_stop()
        await first.end()
    assert first.status is JobStatus.CANCELED
    assert folder.last_status() is RunStatus.STOPPED
    assert "stops with checkpoint 1" in caplog.text

    source = Numbers(allowed=7)
    second = Job(
        source=source, checkpoints=never, folder=folder, recovery=RecoverySettings(path="latest")
    )
    second.start()
    await until(lambda: len(second.results) == 2)
    second.run.request_stop()
    await second.end()
    assert source.starts == [5]
    assert second.results == [5, 6]


async def test_a_stop_without_checkpoints_ends_at_once() -> None:
    """There is nothing to wait for."""
    job = Job()
    job.start()
    await until(lambda: len(job.results) == 5)
    job.run.request_stop()
    await job.end()
    assert job.status is JobStatus.CANCELED


async def test_a_cancelled_job_takes_no_final_checkpoint() -> None:
    """What was complete before stays."""
    job = Job(checkpoints=CheckpointSettings(interval_ms=600_000))
    job.start()
    await until(lambda: len(job.results) == 5)
    job.run.cancel()
    await job.end()
    assert job.status is JobStatus.CANCELED
    assert await job.folder.storage.checkpoints() == []


class StuckFlush(CollectSink[Any]):
    """Its flush never ends once it is told to get stuck."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck = False

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[Any]:
        writer = super().create_writer(context)
        flush = writer.flush

        async def stuck(end_of_input: bool) -> None:
            if self.stuck:
                await asyncio.Event().wait()
            await flush(end_of_input)

        writer.flush = stuck  # type: ignore[method-assign]  # gets stuck
        return writer


async def test_a_stop_that_takes_too_long_names_the_newest_checkpoint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The job leaves without a final one, in bounded time."""
    sink = StuckFlush()
    job = Job(sink=sink, checkpoints=CHECKPOINTS, stop=StopSettings(stop_timeout_ms=50))
    job.start()
    await until(lambda: job.checkpoint() >= 2)
    sink.stuck = True
    job.run.request_stop()
    await job.end()
    newest = (await job.folder.storage.checkpoints())[-1]
    assert job.status is JobStatus.CANCELED
    assert (
        f"did not stop within 50 ms and leaves without a final checkpoint; the newest is {newest}"
        in caplog.text
    )


async def test_a_stop_whose_checkpoint_cannot_even_begin_ends_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time runs before anything else is tried."""
    never = CheckpointSettings(interval_ms=600_000)
    job = Job(checkpoints=never, stop=StopSettings(stop_timeout_ms=50))
    job.start()
    await until(lambda: job.run.statistics().records_out > 0)

    def broken(self: Attempt) -> None:
        raise RuntimeError("cannot begin")

    monkeypatch.setattr(Attempt, "stop_with_checkpoint", broken)
    with pytest.raises(RuntimeError, match="cannot begin"):
        job.run.request_stop()
    await job.end()
    assert job.status is JobStatus.CANCELED


async def test_a_stop_that_takes_too_long_may_have_no_checkpoint_of_its_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Then the newest one is that of an earlier run, if there is any."""
    sink = StuckFlush()
    sink.stuck = True
    never = CheckpointSettings(interval_ms=600_000)
    job = Job(sink=sink, checkpoints=never, stop=StopSettings(stop_timeout_ms=50))
    job.start()
    await until(lambda: job.run.statistics().records_out > 0)
    job.run.request_stop()
    await job.end()
    assert "the newest is not of this run" in caplog.text


async def test_a_stop_while_waiting_for_a_restart_is_honoured() -> None:
    """It does not wait out the delay."""

    def fail(value: int) -> int:
        raise ValueError("always")

    job = Job(fail, restart=tries(5, delay_ms=600_000))
    job.start()
    await until(lambda: job.status is JobStatus.RESTARTING)
    job.run.request_stop()
    await job.end()
    assert job.status is JobStatus.CANCELED


async def test_a_stop_while_operators_open_is_honoured() -> None:
    """Nothing has run yet, so there is nothing to save."""
    source = Numbers()
    job = Job(source=source, checkpoints=CHECKPOINTS)
    source.on_start = job.run.request_stop
    await job.end()
    assert job.status is JobStatus.CANCELED
    assert await job.folder.storage.checkpoints() == []


async def test_a_stop_while_state_is_restored_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempt that is about to begin must not run to its end."""
    from runtime import job as job_module

    folder = InMemoryJobFolder()
    first = Job(checkpoints=CHECKPOINTS, folder=folder)
    first.start()
    await until(lambda: first.checkpoint() >= 1)
    first.run.request_stop()
    await first.end()

    second = Job(checkpoints=CHECKPOINTS, folder=folder, recovery=RecoverySettings(path="latest"))
    restore = job_module.restore

    async def slow(*args: Any, **options: Any) -> Any:
        restored = await restore(*args, **options)
        second.run.request_stop()
        return restored

    monkeypatch.setattr(job_module, "restore", slow)
    await second.end()
    assert second.status is JobStatus.CANCELED


async def test_a_stop_before_the_start_runs_nothing() -> None:
    """The source is never asked."""
    source = Numbers()
    job = Job(source=source)
    job.run.request_stop()
    await job.end()
    assert source.starts == []


async def test_a_failure_during_a_stop_is_told_and_not_followed_by_a_restart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The stop outranks it."""
    source = Numbers()

    def fail(value: int) -> int:
        job.run.request_stop()
        raise ValueError("while stopping")

    job = Job(fail, source=source, checkpoints=CHECKPOINTS, restart=tries(3))
    await job.end()
    assert len(source.starts) == 1
    assert job.status is JobStatus.CANCELED
    assert "while stopping" in caplog.text
