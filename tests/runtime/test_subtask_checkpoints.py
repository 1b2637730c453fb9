"""One subtask's part of a checkpoint: cut, file, flush and answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from operators.elements import RecordBatch
from operators.stream_operator import StreamOperator, Work
from runtime.chain import ChainNode
from runtime.clock import SimulatedClock
from runtime.fork_snapshot import can_fork
from runtime.joint_fork import ChildSlots, JointFork
from runtime.subtask_checkpoints import CHILDREN_MAX, SubtaskCheckpoints
from statebackends.descriptors import ListStateDescriptor, ValueStateDescriptor
from statebackends.file_storage import FileSystemCheckpointStorage, run_directly
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import KeyGroupRange
from statebackends.storage import CheckpointStorage, InMemoryCheckpointStorage, StateFile
from tests.runtime.chain_parts import barrier, node
from tests.runtime.children import children
from tests.runtime.task_rig import settle

SECONDS = 10
COUNTS: ValueStateDescriptor[Any] = ValueStateDescriptor("counts")


class Counts(StreamOperator):
    """Keyed state by hand, and hooks that a test fills."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.flushing: asyncio.Event | None = None
        self.flush_error: BaseException | None = None

    def process_batch(self, batch: RecordBatch) -> Work:
        return ()

    def put(self, key: str, value: object) -> None:
        keyed = self.context.keyed_state
        keyed.set_current_key(key)
        keyed.get_partitioned_state(COUNTS).update(value)  # type: ignore[attr-defined]  # a value state

    def snapshot_state(self, checkpoint_id: int) -> None:
        self.events.append(("snapshot", checkpoint_id))

    async def flush(self, checkpoint_id: int) -> None:
        self.events.append(("flush", checkpoint_id))
        if self.flushing is not None:
            await self.flushing.wait()
        if self.flush_error is not None:
            raise self.flush_error


class Subtask:
    """Fits `CheckpointReplies`; keeps the background work of the checkpoints."""

    def __init__(self, storage: CheckpointStorage, **options: Any) -> None:
        keyed = HeapKeyedStateBackend(KeyGroupRange(0, 7), 8)
        self.operator = Counts()
        self.node: ChainNode = node(self.operator, "Count", keyed=keyed)
        self.storage = storage
        self.slots: ChildSlots = options.setdefault("slots", ChildSlots())
        self.replies: list[tuple[Any, ...]] = []
        self.work: list[asyncio.Task[None]] = []
        options.setdefault("forks", JointFork(SimulatedClock(), self.slots, self._spawn))
        self.checkpoints = SubtaskCheckpoints(
            [self.node], storage, self, file_name="1-0", spawn=self._spawn, **options
        )

    def _spawn(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        self.work.append(asyncio.create_task(coroutine))  # type: ignore[arg-type]  # a coroutine
        return self.work[-1]

    async def done(self) -> None:
        await asyncio.wait_for(asyncio.gather(*self.work, return_exceptions=True), SECONDS)
        await settle(2)

    async def saved(self, checkpoint_id: int = 1) -> dict[object, object]:
        """The keyed state of the file that was acknowledged."""
        (file,) = [
            reply[2] for reply in self.replies if reply[:2] == ("acknowledged", checkpoint_id)
        ]
        opened = await self.storage.open(checkpoint_id, file)
        keyed = HeapKeyedStateBackend(KeyGroupRange(0, 7), 8)
        restored = opened.keyed("Count")
        assert restored is not None
        keyed.restore([restored])
        state: Any = keyed.get_partitioned_state(COUNTS)
        values = {}
        for key in list(keyed.keys("counts")):
            keyed.set_current_key(key)
            values[key] = state.value()
        return values

    def acknowledged(self, checkpoint_id: int, file: StateFile | None, *, finished: bool) -> None:
        self.replies.append(("acknowledged", checkpoint_id, file, finished))

    def declined(self, checkpoint_id: int, reason: str) -> None:
        self.replies.append(("declined", checkpoint_id, reason))

    def failed(self, error: BaseException) -> None:
        self.replies.append(("failed", error))


@pytest.fixture
def files(tmp_path: Path) -> FileSystemCheckpointStorage:
    return FileSystemCheckpointStorage(tmp_path, run_blocking=run_directly)


@pytest.fixture(autouse=True)
def no_children() -> Iterator[None]:
    """No test leaves a child behind."""
    before = children()
    yield
    assert children() <= before


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that children were made for."""
    from runtime import joint_fork

    made: list[str] = []
    real = joint_fork.SnapshotChild

    def record(write: Any, path: str) -> Any:
        made.append(path)
        return real(write, path)

    monkeypatch.setattr(joint_fork, "SnapshotChild", record)
    return made


async def test_the_cut_is_what_the_state_was_at_the_barrier() -> None:
    """Later changes are not in it, though the file is stored later."""
    subtask = Subtask(InMemoryCheckpointStorage())
    subtask.operator.put("a", 1)
    subtask.checkpoints.take(barrier(1), finished=False)
    subtask.operator.put("a", 2)
    await subtask.done()
    assert await subtask.saved() == {"a": 1}


@pytest.mark.skipif(not can_fork(), reason="the platform has no pidfd")
async def test_a_big_cut_is_written_by_a_child(
    files: FileSystemCheckpointStorage, forks: list[str]
) -> None:
    """Above the bound, and with the state of the fork."""
    subtask = Subtask(files, inline_entries_max=2)
    for key in "abc":
        subtask.operator.put(key, [key])
    subtask.checkpoints.take(barrier(1), finished=False)
    subtask.operator.put("a", "changed")
    await subtask.done()
    assert await subtask.saved() == {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert len(forks) == 1
    assert subtask.slots.alive == 0


async def test_a_small_cut_is_written_without_a_child(
    files: FileSystemCheckpointStorage, forks: list[str]
) -> None:
    """A fork would cost more."""
    subtask = Subtask(files, inline_entries_max=3)
    for key in "abc":
        subtask.operator.put(key, key)
    subtask.checkpoints.take(barrier(1), finished=False)
    await subtask.done()
    assert len(await subtask.saved()) == 3
    assert forks == []


async def test_there_are_never_more_than_so_many_children(
    files: FileSystemCheckpointStorage, forks: list[str]
) -> None:
    """A cut beyond them is serialised at once."""
    subtask = Subtask(files, inline_entries_max=0, slots=ChildSlots())
    subtask.slots.alive = CHILDREN_MAX
    subtask.operator.put("a", 1)
    subtask.checkpoints.take(barrier(1), finished=False)
    await subtask.done()
    assert await subtask.saved() == {"a": 1}
    assert forks == []


async def test_without_a_place_for_it_there_is_no_child(forks: list[str]) -> None:
    """A storage in memory has no path that a child could write to."""
    subtask = Subtask(InMemoryCheckpointStorage(), inline_entries_max=0)
    subtask.operator.put("a", 1)
    subtask.checkpoints.take(barrier(1), finished=False)
    await subtask.done()
    assert await subtask.saved() == {"a": 1}
    assert forks == []


async def test_a_subtask_without_state_writes_no_file() -> None:
    """It only acknowledges."""
    storage = InMemoryCheckpointStorage()
    subtask = Subtask(storage)
    subtask.checkpoints.take(barrier(1), finished=True)
    await subtask.done()
    assert subtask.replies == [("acknowledged", 1, None, True)]
    assert await storage.highest_id() == 0


@pytest.mark.parametrize("inline_entries_max", [0, 5000], ids=["in a child", "at once"])
async def test_state_that_cannot_be_serialised_declines_the_checkpoint(
    files: FileSystemCheckpointStorage, inline_entries_max: int
) -> None:
    """The reason names the state."""
    subtask = Subtask(files, inline_entries_max=inline_entries_max)
    subtask.operator.put("a", lambda: 1)
    subtask.checkpoints.take(barrier(1), finished=False)
    await subtask.done()
    ((kind, _, reason),) = subtask.replies
    assert kind == "declined"
    assert "counts" in reason
    assert subtask.slots.alive == 0


async def test_a_failing_hook_declines_the_checkpoint() -> None:
    """The reason names the operator; the task goes on."""
    subtask = Subtask(InMemoryCheckpointStorage())

    def fail(checkpoint_id: int) -> None:
        raise ValueError("user code")

    subtask.operator.snapshot_state = fail  # type: ignore[method-assign]  # it is to fail
    subtask.checkpoints.take(barrier(1), finished=False)
    await subtask.done()
    ((kind, _, reason),) = subtask.replies
    assert kind == "declined"
    assert "ValueError" in reason
    assert "user code" in reason


@pytest.mark.parametrize("inline_entries_max", [0, 5000], ids=["in a child", "at once"])
async def test_a_disk_that_cannot_be_written_declines_the_checkpoint(
    files: FileSystemCheckpointStorage, inline_entries_max: int
) -> None:
    """The reason names the path."""
    subtask = Subtask(files, inline_entries_max=inline_entries_max)
    subtask.operator.put("a", 1)
    path = files.local_path(1, "1-0")
    assert path is not None
    path.mkdir()
    subtask.checkpoints.take(barrier(1), finished=False)
    await subtask.done()
    ((kind, checkpoint_id, reason),) = subtask.replies
    assert (kind, checkpoint_id) == ("declined", 1)
    assert str(path) in reason


async def test_the_answer_waits_for_the_flush() -> None:
    """What was processed before the barrier must be safe outside."""
    subtask = Subtask(InMemoryCheckpointStorage())
    subtask.operator.flushing = asyncio.Event()
    subtask.checkpoints.take(barrier(1), finished=False)
    await settle()
    assert subtask.operator.events == [("snapshot", 1), ("flush", 1)]
    assert subtask.replies == []
    subtask.operator.flushing.set()
    await subtask.done()
    assert subtask.replies == [("acknowledged", 1, None, False)]


async def test_a_failing_flush_fails_the_subtask() -> None:
    """Not only the checkpoint: records are lost outside. The failure names the operator."""
    subtask = Subtask(InMemoryCheckpointStorage())
    subtask.operator.flush_error = OSError("broker gone")
    subtask.checkpoints.take(barrier(3), finished=False)
    await subtask.done()
    ((kind, error),) = subtask.replies
    assert kind == "failed"
    assert "'Count'" in str(error)
    assert "checkpoint 3" in str(error)
    assert error.__cause__ is subtask.operator.flush_error


async def test_an_aborted_checkpoint_is_not_worked_on_any_more() -> None:
    """No answer comes."""
    subtask = Subtask(InMemoryCheckpointStorage())
    subtask.operator.flushing = asyncio.Event()
    subtask.checkpoints.take(barrier(1), finished=False)
    await settle()
    subtask.checkpoints.notify_aborted(1)
    await subtask.done()
    assert subtask.work[0].cancelled()
    assert subtask.replies == []


async def test_the_abort_of_another_checkpoint_changes_nothing() -> None:
    """Each has work of its own."""
    subtask = Subtask(InMemoryCheckpointStorage())
    subtask.checkpoints.take(barrier(1), finished=False)
    subtask.checkpoints.notify_aborted(2)
    await subtask.done()
    assert subtask.replies == [("acknowledged", 1, None, False)]


@pytest.mark.skipif(not can_fork(), reason="the platform has no pidfd")
@pytest.mark.parametrize("turns", [0, 1, 3], ids=["at once", "in the next turn", "later"])
@pytest.mark.parametrize("how", ["abort", "close"])
async def test_a_checkpoint_that_is_over_leaves_no_child(
    files: FileSystemCheckpointStorage, turns: int, how: str
) -> None:
    """Also where its work was cancelled before its first step."""
    subtask = Subtask(files, inline_entries_max=0)
    subtask.operator.put("a", "x" * 1000)
    subtask.checkpoints.take(barrier(1), finished=False)
    await settle(turns)
    if how == "abort":
        subtask.checkpoints.notify_aborted(1)
    else:
        subtask.checkpoints.close()
    await subtask.done()
    assert subtask.slots.alive == 0


async def test_operators_that_had_finished_hand_their_state_on() -> None:
    """Nothing of them is called, and what was restored is in the new file."""
    subtask = Subtask(InMemoryCheckpointStorage(), passive=True)
    entries = subtask.node.context.operator_state.get_list_state(ListStateDescriptor("offsets"))
    entries.add(7)
    subtask.checkpoints.take(barrier(1), finished=True)
    await subtask.done()
    ((kind, _, file, finished),) = subtask.replies
    assert (kind, finished) == ("acknowledged", True)
    opened = await subtask.storage.open(1, file)
    assert opened.operator_state("Count") is not None
    assert subtask.operator.events == []
