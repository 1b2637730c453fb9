"""The driver between the coordinator, the clock, the storage and the tasks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_driver import CheckpointDriver, CheckpointFailedError
from runtime.checkpoint_messages import AttemptId, SubtaskId
from runtime.checkpoint_metadata import parse_metadata
from runtime.clock import SimulatedClock
from runtime.enumerators import SplitEnumerators
from runtime.job_folder import InMemoryJobFolder, SupersededError
from runtime.survival_settings import CheckpointSettings
from statebackends.errors import CheckpointStorageError
from statebackends.storage import InMemoryCheckpointStorage
from tests.runtime.planned import planned, vertex

SOURCE, SINK = SubtaskId(1, 0), SubtaskId(2, 0)
VERTICES = [vertex(1, planned("clicks")), vertex(2, planned("counts", 2), planned("sink", 3))]


class Tasks:
    """Every call in order, in words."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failures: list[BaseException] = []

    def trigger_checkpoint(
        self, subtask: SubtaskId, checkpoint_id: int, timestamp_ms: int, *, final: bool
    ) -> None:
        last = " final" if final else ""
        self.calls.append(f"{subtask.vertex}: trigger {checkpoint_id} at {timestamp_ms}{last}")

    def notify_complete(self, subtask: SubtaskId, checkpoint_id: int) -> None:
        self.calls.append(f"{subtask.vertex}: complete {checkpoint_id}")

    def notify_aborted(self, subtask: SubtaskId, checkpoint_id: int) -> None:
        self.calls.append(f"{subtask.vertex}: aborted {checkpoint_id}")

    def release(self, subtask: SubtaskId) -> None:
        self.calls.append(f"{subtask.vertex}: release")

    def final_checkpoint_ended(self, checkpoint_id: int | None, reason: str) -> None:
        self.calls.append(f"final {checkpoint_id}")

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        self.calls.append(f"completed {checkpoint_id}")

    def fail_job(self, error: BaseException) -> None:
        self.failures.append(error)


class Enumerators(SplitEnumerators):
    """One state per checkpoint, and what is held back is set by the test."""

    def __init__(self) -> None:
        super().__init__([], SimulatedClock(), self)  # type: ignore[arg-type]  # nothing is delivered
        self.held = False
        self.error: Exception | None = None
        self.told: list[str] = []

    def cut(self, checkpoint_id: int) -> dict[str, bytes]:
        if self.error is not None:
            raise self.error
        self.told.append(f"cut {checkpoint_id}")
        return {"clicks": b"state %d" % checkpoint_id}

    def passed(self, checkpoint_id: int, reader: SubtaskId) -> None:
        self.told.append(f"passed {checkpoint_id} {reader.vertex}")

    def ended(self, checkpoint_id: int) -> None:
        self.told.append(f"ended {checkpoint_id}")

    @property
    def hold_back(self) -> bool:
        return self.held


class Storage(InMemoryCheckpointStorage):
    """Completion waits for a gate and fails if it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def complete(self, checkpoint_id: int, metadata: bytes) -> None:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        await super().complete(checkpoint_id, metadata)


class Job:
    def __init__(self, **settings: int) -> None:
        chosen: Mapping[str, int] = {"interval_ms": 1_000, "timeout_ms": 5_000, **settings}
        self.clock = SimulatedClock()
        self.storage = Storage()
        self.folder = InMemoryJobFolder(self.storage)
        self.tasks = Tasks()
        self.enumerators = Enumerators()
        self.coordinator = CheckpointCoordinator(CheckpointSettings(**chosen))
        self.driver = CheckpointDriver(
            job_name="counts",
            attempt=AttemptId(self.folder.begin_run(), 1),
            coordinator=self.coordinator,
            folder=self.folder,
            vertices=VERTICES,
            enumerators=self.enumerators,
            control=self.tasks,
            clock=self.clock,
        )
        self.running: asyncio.Task[None] | None = None

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def acknowledge(self, checkpoint_id: int, *, finished: bool = False) -> None:
        for subtask in (SOURCE, SINK):
            name = f"{subtask.vertex}-{checkpoint_id}"
            file = await self.storage.write(checkpoint_id, name, b"state")
            self.driver.replies(subtask).acknowledged(checkpoint_id, file, finished=finished)
        await self.settle()

    async def stop(self) -> None:
        if self.running is not None:
            self.running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await self.running
            self.running = None


@asynccontextmanager
async def running(**settings: int) -> AsyncIterator[Job]:
    job = Job(**settings)
    job.driver.start()
    job.running = asyncio.create_task(job.driver.run())
    yield job
    job.storage.gate.set()
    await job.stop()
    await job.driver.close()


async def test_a_checkpoint_goes_from_the_clock_to_the_notice() -> None:
    """Enumerators are cut first, every task is triggered and told, the metadata is stored."""
    async with running() as job:
        job.clock.advance_to(999)
        early = list(job.tasks.calls)
        job.clock.advance_to(1_000)
        cut = list(job.enumerators.told)
        await job.acknowledge(1)

        assert (early, cut) == ([], ["cut 1"])
        assert job.tasks.calls == [
            "1: trigger 1 at 1000",
            "2: trigger 1 at 1000",
            "completed 1",
            "1: complete 1",
            "2: complete 1",
        ]
        assert job.enumerators.told == ["cut 1", "passed 1 1", "passed 1 2", "ended 1"]


async def test_the_metadata_holds_files_and_enumerator_states() -> None:
    """Operators of one chain share their file."""
    async with running() as job:
        job.clock.advance_to(1_000)
        await job.acknowledge(1)

        metadata = parse_metadata(await job.storage.metadata(1), "metadata")
        assert [operator.uid for operator in metadata.operators] == ["clicks", "counts", "sink"]
        assert metadata.operators[1].files == metadata.operators[2].files
        assert metadata.enumerators == {"clicks": b"state 1"}
        assert metadata.attempt == AttemptId(1, 1)


async def test_only_the_retained_checkpoints_stay() -> None:
    """The oldest goes after the newest is in place; what was never completed goes too."""
    async with running(retained=2) as job:
        await job.storage.write(0, "orphan", b"half")
        for number in (1, 2, 3):
            job.clock.advance_to(number * 1_000)
            await job.acknowledge(number)

        assert await job.storage.checkpoints() == [2, 3]
        assert await job.storage.discard_incomplete(3) == []


async def test_a_cut_waits_for_assignments_that_were_held_back() -> None:
    """Else the enumerator's state would know a split that no reader has in this checkpoint."""
    async with running(max_concurrent=2) as job:
        job.clock.advance_to(1_000)
        job.enumerators.held = True
        job.clock.advance_to(2_000)
        held = [call for call in job.tasks.calls if "trigger 2" in call]
        job.enumerators.held = False

        await job.acknowledge(1)

        assert held == []
        assert "1: trigger 2 at 2000" in job.tasks.calls


async def test_a_failed_cut_fails_the_checkpoint_only() -> None:
    """No task hears of its barrier; the next one may succeed."""
    async with running(tolerable_failures=1) as job:
        job.enumerators.error = ValueError("not serialisable")
        job.clock.advance_to(1_000)
        job.enumerators.error = None
        job.clock.advance_to(2_000)

        assert job.tasks.calls[:2] == ["1: aborted 1", "2: aborted 1"]
        assert "1: trigger 2 at 2000" in job.tasks.calls
        assert "not serialisable" in (job.coordinator.statistics().latest_failure or "")


async def test_a_full_disk_fails_the_checkpoint_and_the_job_goes_on() -> None:
    """Within the tolerated number; then the next checkpoint is complete."""
    async with running(tolerable_failures=1) as job:
        job.clock.advance_to(1_000)
        job.storage.error = CheckpointStorageError("chk-1/metadata: no space left on device")
        await job.acknowledge(1)
        job.storage.error = None
        job.clock.advance_to(2_000)
        await job.acknowledge(2)

        assert "2: aborted 1" in job.tasks.calls
        assert "2: complete 2" in job.tasks.calls
        assert await job.storage.highest_id() == 2
        assert job.tasks.failures == []


async def test_too_many_failures_fail_the_job() -> None:
    """The error says what failed last."""
    async with running() as job:
        job.clock.advance_to(1_000)
        job.driver.replies(SINK).declined(1, "no space left on device")

        assert [type(error) for error in job.tasks.failures] == [CheckpointFailedError]
        assert "no space left on device" in str(job.tasks.failures[0])


async def test_a_checkpoint_expires_by_the_clock() -> None:
    """Nobody has to ask."""
    async with running(tolerable_failures=1) as job:
        job.clock.advance_to(5_999)
        before = [call for call in job.tasks.calls if "aborted" in call]
        job.clock.advance_to(6_000)

        assert before == []
        assert "1: aborted 1" in job.tasks.calls


async def test_a_superseded_run_writes_nothing_more() -> None:
    """Neither metadata nor a notice: the newer run owns the checkpoints."""
    async with running() as job:
        job.clock.advance_to(1_000)
        job.folder.begin_run()
        await job.acknowledge(1)

        assert await job.storage.checkpoints() == []
        assert [type(error) for error in job.tasks.failures] == [SupersededError]
        assert not any("complete" in call for call in job.tasks.calls)


async def test_a_run_superseded_while_it_stores_commits_nothing() -> None:
    """The epoch is looked at again before anybody is told."""
    async with running() as job:
        job.clock.advance_to(1_000)
        job.storage.gate.clear()
        await job.acknowledge(1)
        job.folder.begin_run()
        job.storage.gate.set()
        await job.settle()

        assert [type(error) for error in job.tasks.failures] == [SupersededError]
        assert not any("complete" in call for call in job.tasks.calls)


async def test_a_superseded_run_deletes_nothing() -> None:
    """What it would discard may be what the newer run restores from."""
    async with running(tolerable_failures=1) as job:
        job.clock.advance_to(1_000)
        await job.storage.write(1, "state", b"state")
        job.folder.begin_run()
        job.driver.replies(SINK).declined(1, "-")
        await job.settle()

        assert await job.storage.highest_id() == 1


async def test_a_folder_that_cannot_be_read_fails_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether a newer run has begun is unknown, so nothing is written."""
    async with running(tolerable_failures=1) as job:

        def unreadable() -> int:
            raise CheckpointStorageError("epochs: cannot be used: Input/output error")

        monkeypatch.setattr(job.folder, "newest_epoch", unreadable)
        job.clock.advance_to(1_000)
        await job.acknowledge(1)

        assert await job.storage.checkpoints() == []
        assert "2: aborted 1" in job.tasks.calls
        assert job.tasks.failures == []


async def test_a_store_that_was_begun_is_brought_to_its_end() -> None:
    """After the close it is certain which checkpoint the next attempt restores from."""
    async with running() as job:
        job.clock.advance_to(1_000)
        job.storage.gate.clear()
        await job.acknowledge(1)
        await job.stop()
        closing = asyncio.ensure_future(job.driver.close())
        await job.settle()
        unfinished = not closing.done()

        job.storage.gate.set()
        await closing

        assert unfinished
        assert job.tasks.calls[-1] == "completed 1"
        assert job.coordinator.latest_completed_id == 1
        assert await job.storage.checkpoints() == [1]


async def test_what_is_pending_at_the_close_is_removed() -> None:
    """Its files are of no use to anybody."""
    async with running() as job:
        job.clock.advance_to(1_000)
        await job.storage.write(1, "state", b"state")

        await job.stop()
        await job.driver.close()

        assert await job.storage.highest_id() == 0
        assert job.clock.next_call_ms() is None


async def test_a_finished_job_is_released_after_its_last_checkpoint() -> None:
    """It begins with the last subtask's end and covers it."""
    async with running() as job:
        job.driver.subtask_finished(SOURCE)
        job.driver.subtask_finished(SINK)
        await job.acknowledge(1, finished=True)

        assert job.tasks.calls[-2:] == ["1: release", "2: release"]
        metadata = parse_metadata(await job.storage.metadata(1), "metadata")
        assert all(operator.finished for operator in metadata.operators)


async def test_a_stop_is_answered_with_its_final_checkpoint() -> None:
    """The tasks' trigger says that it is the last one."""
    async with running() as job:
        job.clock.advance_to(100)
        job.driver.request_final()
        await job.acknowledge(1)

        assert job.tasks.calls[0] == "1: trigger 1 at 100 final"
        assert "final 1" in job.tasks.calls


async def test_messages_of_a_former_attempt_change_nothing() -> None:
    """Replies are bound to the attempt that they were made for."""
    async with running() as job:
        former = job.driver.replies(SINK)
        job.clock.advance_to(1_000)
        await job.stop()
        await job.driver.close()
        job.coordinator.start(1_000, AttemptId(1, 2), [SOURCE, SINK])
        job.coordinator.tick(2_000)
        job.coordinator.enumerators_cut(2_000, 2)

        former.acknowledged(2, None, finished=False)

        assert job.coordinator.statistics().dropped_messages == 1
        job.coordinator.halt(2_000)
