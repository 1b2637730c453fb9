"""One run of a job: failures, and what follows them."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from operators.builtin import CollectSink, IteratorSource
from operators.errors import UnreachableError
from operators.functions import MapFunction
from operators.runtime_context import RuntimeContext
from operators.sink import SinkWriter, SinkWriterContext
from operators.source import SplitEnumerator, SplitEnumeratorContext
from runtime.errors import JobExecutionError
from runtime.job_folder import InMemoryJobFolder
from runtime.job_result import JobStatus
from runtime.survival_settings import (
    CheckpointSettings,
    RecoverySettings,
    StopSettings,
)
from tests.runtime.job_rig import CHECKPOINTS, Job, Numbers, tries, until
from tests.runtime.traced_function import SPAN, Traced


class FailingSubtask(MapFunction[int, int]):
    """Fails at its first record, with the number of its subtask."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._index = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> int:
        raise ValueError(f"subtask {self._index}")


async def test_without_a_strategy_the_first_failure_ends_the_job() -> None:
    """The error says where, and its cause is the user's exception itself."""
    broken = ValueError("user code")

    def fail(value: int) -> int:
        raise broken

    job = Job(fail)
    with pytest.raises(JobExecutionError, match=r"'counting' failed in operator 'function'") as e:
        await job.end()
    assert e.value.__cause__ is broken
    assert job.status is JobStatus.FAILED
    assert len(job.source.starts) == 1  # type: ignore[attr-defined]  # numbers


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_a_fixed_number_of_tries_is_kept_exactly(count: int) -> None:
    """One start and so many restarts."""

    def fail(value: int) -> int:
        raise ValueError("always")

    source = Numbers()
    job = Job(fail, source=source, restart=tries(count))
    with pytest.raises(JobExecutionError):
        await job.end()
    assert len(source.starts) == 1 + count
    assert job.run.statistics().restarts == count


async def test_later_failures_are_notes_of_the_error_of_the_job() -> None:
    """What failed in the same attempt after the first one is not lost."""

    def fail(value: int) -> int:
        attempt = job.run._attempt
        assert attempt is not None
        call_soon = asyncio.get_running_loop().call_soon
        # Two turns later: the failure of the task takes one to its coroutine, one to its end.
        call_soon(call_soon, call_soon, attempt.supervisor.fail, KeyError("beside"))
        raise ValueError("first")

    job = Job(fail)
    with pytest.raises(JobExecutionError, match="first") as e:
        await job.end()
    assert e.value.__notes__ == ["then also: KeyError: 'beside'"]


async def test_two_tasks_that_fail_in_the_same_turn_are_both_told() -> None:
    """The second one ends before its cancellation, which must not take the place of its error."""
    job = Job(FailingSubtask(), parallelism=2)
    with pytest.raises(JobExecutionError, match="subtask 0") as e:
        await job.end()
    assert e.value.__notes__ == [
        (
            "then also: operator 'function' (uid function, subtask 2/2), record 0:"
            " ValueError(subtask 1)"
        )
    ]


@pytest.mark.parametrize(
    ("reset_at", "spans"), [(3, ["opened"] * 3 + ["nothing"] * 2), (None, ["opened"] * 5)]
)
async def test_context_variables_of_a_function_last_from_open_to_close(
    reset_at: int | None, spans: list[str]
) -> None:
    """As if all of it were one coroutine: a token of `open` is good in a call and in `close`."""
    job = Job(Traced(reset_at))
    job.start()
    await until(lambda: len(job.results) == 5)
    job.run.cancel()
    await job.end()
    assert job.results == spans
    assert Traced.at_close.pop() == "nothing"
    assert SPAN.get() == "nothing"


async def waits() -> None:
    await asyncio.Event().wait()


async def test_what_the_runtime_cannot_take_from_a_function_is_not_tried_again() -> None:
    """It would be the same after every start."""
    source = Numbers()
    job = Job(lambda value: waits(), source=source, restart=tries(3))
    with pytest.raises(JobExecutionError, match=r"WrongResultError.*coroutine"):
        await job.end()
    assert len(source.starts) == 1


class Remote(SplitEnumerator):
    """Reaches its system or not, as the test says."""

    answers: ClassVar[list[bool]] = []

    async def start(self) -> None:
        self._ask()

    async def run(self) -> None:
        while True:
            self._ask()
            await asyncio.sleep(0)

    def _ask(self) -> None:
        if self.answers and not self.answers.pop(0):
            raise UnreachableError("no answer at example:9092")

    def snapshot_state(self) -> bytes:
        return b""

    def restore_state(self, state: bytes) -> None:
        return None


class FromRemote(Numbers):
    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator:
        return Remote(context)


async def test_a_job_that_never_reached_its_system_is_not_started_again() -> None:
    """Most likely the address is wrong, and a job that tries on looks as if it ran."""
    source = FromRemote()
    Remote.answers[:] = [False]
    job = Job(source=source, restart=tries(3))
    with pytest.raises(JobExecutionError, match=r"numbers'.*no answer at example:9092"):
        await job.end()
    assert job.run.statistics().restarts == 0


async def test_a_job_that_loses_its_system_is_started_again() -> None:
    """Also if the system does not answer at the first new starts."""
    source = FromRemote()
    Remote.answers[:] = [True, True, False, False]
    job = Job(source=source, restart=tries(3))
    job.start()
    await until(lambda: len(source.starts) == 3 and job.status is JobStatus.RUNNING)
    job.run.cancel()
    await job.end()
    assert job.run.statistics().restarts == 2


async def test_a_flush_at_a_checkpoint_sees_the_context_of_its_task() -> None:
    """What `open` set is there, and what the flush sets is there afterwards."""
    spans: list[str] = []

    class Flushing(CollectSink[Any]):
        def create_writer(self, context: SinkWriterContext) -> SinkWriter[Any]:
            writer = super().create_writer(context)

            async def flush(end_of_input: bool) -> None:
                spans.append(SPAN.get())
                SPAN.set(f"flush {len(spans)}")

            writer.flush = flush  # type: ignore[method-assign]  # the test's
            return writer

    job = Job(Traced(reset_at=-1), sink=Flushing(), checkpoints=CHECKPOINTS)
    job.start()
    await until(lambda: len(spans) >= 3)
    job.run.cancel()
    await job.end()
    assert spans[:3] == ["opened", "flush 1", "flush 2"]
    Traced.at_close.clear()


async def test_without_checkpoints_a_restart_begins_anew() -> None:
    """There is nothing to go on from."""
    failures = [ValueError("once")]

    def fail_once(value: int) -> int:
        if value == 4 and failures:
            raise failures.pop()
        return value

    source = Numbers()
    job = Job(fail_once, source=source, restart=tries(1))
    job.start()
    await until(lambda: 4 in job.results)
    job.run.cancel()
    await job.end()
    assert source.starts == [0, 0]


async def test_a_restart_goes_on_from_the_newest_checkpoint() -> None:
    """Position and state of that checkpoint, no older one."""
    armed: list[ValueError] = []

    def fail_when_armed(value: int) -> int:
        if armed:
            raise armed.pop()
        return value

    source = Numbers(allowed=5)
    job = Job(fail_when_armed, source=source, checkpoints=CHECKPOINTS, restart=tries(1))
    job.start()
    await until(lambda: len(job.results) == 5)
    newest = job.checkpoint()
    await until(lambda: job.checkpoint() >= newest + 2)
    armed.append(ValueError("once"))
    source.allowed = 8
    await until(lambda: len(job.results) >= 8 or job.run.statistics().restarts)
    _wake(job)
    await until(lambda: len(source.starts) == 2)
    job.run.cancel()
    await job.end()
    assert source.starts == [0, 5]


def _wake(job: Job) -> None:
    attempt = job.run._attempt
    if attempt is not None:
        for node in attempt.nodes:
            node.context.output_freed()


async def test_a_fresh_run_never_goes_back_to_checkpoints_of_earlier_runs() -> None:
    """A failure before its first checkpoint begins anew."""
    folder = InMemoryJobFolder()
    first = Job(checkpoints=CHECKPOINTS, folder=folder)
    first.start()
    await until(lambda: first.checkpoint() >= 1 and len(first.results) == 5)
    first.run.request_stop()
    await first.end()

    failures = [ValueError("once")]

    def fail_once(value: int) -> int:
        if failures:
            raise failures.pop()
        return value

    source = Numbers()
    second = Job(
        fail_once,
        source=source,
        checkpoints=CheckpointSettings(interval_ms=600_000),
        restart=tries(1),
        recovery=RecoverySettings(fresh=True),
        folder=folder,
    )
    second.start()
    await until(lambda: len(second.results) == 5)
    second.run.cancel()
    await second.end()
    assert source.starts == [0, 0]


async def test_an_iterator_is_not_read_a_second_time(caplog: pytest.LogCaptureFixture) -> None:
    """The restart is refused with the reason; the error of the job is the failure."""

    def fail(value: int) -> int:
        raise ValueError("user code")

    job = Job(fail, source=IteratorSource(iter([1, 2])), checkpoints=CHECKPOINTS, restart=tries(5))
    with pytest.raises(JobExecutionError, match="user code"):
        await job.end()
    assert job.run.statistics().restarts == 0
    assert "reads an iterator" in caplog.text
    assert "numbers'" in caplog.text


async def test_what_does_not_end_forbids_a_restart() -> None:
    """It might still write beside its successor; the error shows where it stands."""
    let_go = asyncio.Event()

    class Stubborn(CollectSink[Any]):
        def create_writer(self, context: SinkWriterContext) -> SinkWriter[Any]:
            writer = super().create_writer(context)

            async def start() -> None:
                while not let_go.is_set():
                    try:
                        await let_go.wait()
                    except asyncio.CancelledError:
                        continue

            writer.start = start  # type: ignore[method-assign]  # never ends
            return writer

    source = Numbers()
    job = Job(
        source=source,
        sink=Stubborn(),
        restart=tries(3),
        stop=StopSettings(cancellation_timeout_ms=20),
    )
    job.start()
    await until(lambda: job.run._attempt is not None)
    assert job.run._attempt is not None
    job.run._attempt.supervisor.fail(ValueError("first"))
    try:
        with pytest.raises(JobExecutionError, match="did not end within"):
            await job.end()
    finally:
        let_go.set()
    assert job.run.statistics().restarts == 0
    assert job.status is JobStatus.FAILED


async def test_figures_add_up_over_restarts() -> None:
    """Records of failed attempts count as read."""
    failures = [ValueError("once")]

    def fail_once(value: int) -> int:
        if value == 4 and failures:
            raise failures.pop()
        return value

    job = Job(fail_once, restart=tries(1))
    job.start()
    await until(lambda: len(job.results) >= 5 and job.run.statistics().restarts == 1)
    figures = job.run.statistics()
    assert figures.records_in == 10
    assert figures.records_out == 5
    job.run.cancel()
    await job.end()
