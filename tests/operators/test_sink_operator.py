"""A sink in its operator: batches, room, flushes and the two phases of a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from operators.errors import PermanentError
from operators.sink import Committer, Sink, SinkWriter, SinkWriterContext
from operators.sink_operator import SinkOperator
from tests.operators.attempt import Attempt, batch, restored_attempts, started_sink


class Ledger(Sink[object]):
    """A two-phase sink that writes down everything that happens to it."""

    def __init__(self, two_phase: bool = True) -> None:
        self.two_phase = two_phase
        self.events: list[str] = []
        self.committed: list[bytes] = []
        self.commit_error: Exception | None = None
        self.commits_held: asyncio.Event | None = None

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[object]:
        self.events.append("create writer")
        return LedgerWriter(self, context)

    def create_committer(self) -> Committer | None:
        return LedgerCommitter(self) if self.two_phase else None


class LedgerWriter(SinkWriter[object]):
    def __init__(self, ledger: Ledger, context: SinkWriterContext) -> None:
        self.ledger = ledger
        self.context = context
        self.open: list[object] = []
        self.room = True

    async def start(self) -> None:
        self.ledger.events.append("start writer")

    def write(self, values: Sequence[object], timestamps: Sequence[int | None] | None) -> None:
        self.open += values

    @property
    def has_room(self) -> bool:
        return self.room

    async def flush(self, end_of_input: bool) -> None:
        self.ledger.events.append("flush at end" if end_of_input else "flush")

    def prepare_commit(self, checkpoint_id: int) -> Sequence[bytes]:
        prepared, self.open = self.open, []
        return [repr(prepared).encode()] if prepared else []

    async def close(self) -> None:
        self.ledger.events.append("close writer")


class LedgerCommitter(Committer):
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def commit(self, committables: Sequence[bytes]) -> None:
        self.ledger.events.append("commit")
        if self.ledger.commits_held is not None:
            await self.ledger.commits_held.wait()
        if self.ledger.commit_error is not None:
            raise self.ledger.commit_error
        self.ledger.committed += committables

    async def close(self) -> None:
        self.ledger.events.append("close committer")


async def settle() -> None:
    """Lets everything that is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_records_become_visible_when_their_checkpoint_is_complete() -> None:
    """Neither the barrier nor the flush commits; the notification does."""
    ledger = Ledger()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    operator.process_batch(batch(1, 2))
    operator.snapshot_state(1)
    operator.process_batch(batch(3))
    await operator.flush(1)
    await settle()
    assert ledger.committed == []
    operator.notify_checkpoint_complete(1)
    await settle()
    assert ledger.committed == [b"[1, 2]"]


async def test_the_committables_of_an_aborted_checkpoint_go_with_the_next() -> None:
    """Nothing is lost, and the order stays."""
    ledger = Ledger()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    for checkpoint_id in (1, 2):
        operator.process_batch(batch(checkpoint_id))
        operator.snapshot_state(checkpoint_id)
    operator.notify_checkpoint_aborted(1)
    operator.notify_checkpoint_complete(2)
    await settle()
    assert ledger.committed == [b"[1]", b"[2]"]


async def test_only_what_is_complete_is_committed() -> None:
    """A later checkpoint under way keeps its committables."""
    ledger = Ledger()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    for checkpoint_id in (1, 2):
        operator.process_batch(batch(checkpoint_id))
        operator.snapshot_state(checkpoint_id)
    operator.notify_checkpoint_complete(1)
    await settle()
    assert ledger.committed == [b"[1]"]


async def test_a_restore_commits_before_the_writer_exists() -> None:
    """A new writer might abort what was left open, so commits come first."""
    before = Attempt()
    operator = await started_sink(SinkOperator(Ledger()), before)
    operator.process_batch(batch("a"))
    operator.snapshot_state(7)
    (after,) = restored_attempts([before.operator_state], 1)
    ledger = Ledger()
    await started_sink(SinkOperator(ledger), after)
    assert ledger.committed == [b"['a']"]
    assert ledger.events == ["commit", "create writer", "start writer"]


async def test_committables_are_dealt_out_when_the_parallelism_changes() -> None:
    """Each is committed by exactly one new subtask."""
    states = []
    for index in range(3):
        attempt = Attempt(index, 3)
        operator = await started_sink(SinkOperator(Ledger()), attempt)
        operator.process_batch(batch(index))
        operator.snapshot_state(1)
        states.append(attempt.operator_state)
    ledger = Ledger()
    for attempt in restored_attempts(states, 2):
        await started_sink(SinkOperator(ledger), attempt)
    assert sorted(ledger.committed) == [b"[0]", b"[1]", b"[2]"]


async def test_committables_stay_in_state_until_the_commit_returned() -> None:
    """A checkpoint taken while a commit is under way still holds what it commits."""
    ledger = Ledger()
    ledger.commits_held = asyncio.Event()
    attempt = Attempt()
    operator = await started_sink(SinkOperator(ledger), attempt)
    operator.process_batch(batch("a"))
    operator.snapshot_state(1)
    operator.notify_checkpoint_complete(1)
    await settle()
    operator.snapshot_state(2)
    (again,) = restored_attempts([attempt.operator_state], 1)
    second = Ledger()
    await started_sink(SinkOperator(second), again)
    assert second.committed == [b"['a']"]
    ledger.commits_held.set()
    await settle()
    operator.snapshot_state(3)
    (again,) = restored_attempts([attempt.operator_state], 1)
    third = Ledger()
    await started_sink(SinkOperator(third), again)
    assert third.committed == []


async def test_commits_never_overlap() -> None:
    """What becomes due during a commit follows it."""
    ledger = Ledger()
    ledger.commits_held = asyncio.Event()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    for checkpoint_id in (1, 2):
        operator.process_batch(batch(checkpoint_id))
        operator.snapshot_state(checkpoint_id)
        operator.notify_checkpoint_complete(checkpoint_id)
        await settle()
    assert ledger.events.count("commit") == 1
    ledger.commits_held.set()
    await settle()
    assert ledger.committed == [b"[1]", b"[2]"]


async def test_a_failed_commit_fails_the_task() -> None:
    """The error is the committer's own."""
    ledger = Ledger()
    ledger.commit_error = OSError("broker gone")
    attempt = Attempt()
    operator = await started_sink(SinkOperator(ledger), attempt)
    operator.process_batch(batch(1))
    operator.snapshot_state(1)
    operator.notify_checkpoint_complete(1)
    await settle()
    assert attempt.failures == [ledger.commit_error]


async def test_a_job_without_checkpoints_commits_at_the_end() -> None:
    """Nothing else would ever make its records visible."""
    ledger = Ledger()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    operator.process_batch(batch(1))
    assert tuple(operator.end_input()) == ()
    await operator.finish()
    assert ledger.committed == [b"[1]"]
    assert ledger.events[-2:] == ["flush at end", "commit"]


async def test_closing_without_an_end_commits_nothing_more() -> None:
    """After a failure the open records belong to the next attempt."""
    ledger = Ledger()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    operator.process_batch(batch(1))
    operator.snapshot_state(1)
    operator.close()
    await operator.close_async()
    assert ledger.committed == []
    assert ledger.events[-2:] == ["close committer", "close writer"]


async def test_closing_waits_for_the_commit_under_way() -> None:
    """A final checkpoint's commit is not cut off."""
    ledger = Ledger()
    ledger.commits_held = asyncio.Event()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    operator.process_batch(batch(1))
    operator.snapshot_state(1)
    operator.notify_checkpoint_complete(1)
    closing = asyncio.ensure_future(operator.close_async())
    await settle()
    assert "close writer" not in ledger.events
    ledger.commits_held.set()
    await closing
    assert ledger.committed == [b"[1]"]


async def test_a_sink_without_committer_flushes_and_commits_nothing() -> None:
    """At least once: the flush is all there is, and no state is kept."""
    ledger = Ledger(two_phase=False)
    attempt = Attempt()
    operator = await started_sink(SinkOperator(ledger), attempt)
    operator.process_batch(batch(1))
    operator.snapshot_state(1)
    await operator.flush(1)
    operator.notify_checkpoint_complete(1)
    await operator.finish()
    assert ledger.events == ["create writer", "start writer", "flush", "flush at end"]
    assert attempt.operator_state.snapshot().empty


async def test_the_writers_room_is_the_operators() -> None:
    """Back-pressure passes through."""
    ledger = Ledger()
    operator = await started_sink(SinkOperator(ledger), Attempt())
    writer = operator._open_writer()
    assert isinstance(writer, LedgerWriter)
    assert operator.has_room
    writer.room = False
    assert not operator.has_room


def test_a_record_before_the_start_is_an_error() -> None:
    """The message names the sink."""
    operator = SinkOperator(Ledger())
    operator.setup(Attempt(operator_name="ledger"))  # type: ignore[arg-type]  # enough for this
    with pytest.raises(RuntimeError, match="'ledger'"):
        operator.process_batch(batch(1))


class PlainWriter(SinkWriter[object]):
    """Written by somebody without a type checker."""

    def write(self, values: Sequence[object], timestamps: Sequence[int | None] | None) -> None:
        """Drops the values."""

    def flush(self, end_of_input: bool) -> None:  # type: ignore[override]  # the mistake
        """Should be async."""

    def close(self) -> None:  # type: ignore[override]  # the mistake
        """Should be async."""


class MadeSink(Sink[object]):
    """Has `made` as its writer."""

    def __init__(self, made: object) -> None:
        self.made = made

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[object]:
        return self.made  # type: ignore[return-value]  # the mistake


async def test_a_writer_method_that_is_not_async_is_named() -> None:
    """No new start mends it."""
    operator = await started_sink(SinkOperator(MadeSink(PlainWriter())), Attempt())
    with pytest.raises(PermanentError, match=r"PlainWriter\.flush\(\) .* async def"):
        await operator.finish()
    with pytest.raises(PermanentError, match=r"PlainWriter\.close\(\) .* async def"):
        await operator.close_async()


class NarrowWriter(PlainWriter):
    def write(self, values: Sequence[object]) -> None:  # type: ignore[override]  # the mistake
        """Knows of no timestamps."""


class AsyncWriter(PlainWriter):
    async def write(self, values: object, timestamps: object) -> None:  # type: ignore[override]  # the mistake
        """Would never be awaited."""


class NarrowFlush(PlainWriter):
    async def flush(self) -> None:  # type: ignore[override]  # the mistake
        """Wants to be told nothing."""


@pytest.mark.parametrize(
    ("writer", "message"),
    [
        (NarrowWriter(), r"with 2 arguments, which NarrowWriter\.write\(values.* does not take"),
        (AsyncWriter(), r"async function AsyncWriter\.write.* write it with def"),
        (NarrowFlush(), r"with 1 argument, which NarrowFlush\.flush\(\).* does not take"),
    ],
)
async def test_a_writer_that_cannot_be_called_is_refused_when_it_is_made(
    writer: SinkWriter[object], message: str
) -> None:
    """As user functions are; not with its first record, and no new start mends it."""
    with pytest.raises(PermanentError, match=message):
        await started_sink(SinkOperator(MadeSink(writer)), Attempt())


async def test_a_sink_that_makes_no_writer_is_named() -> None:
    """A forgotten return is the commonest one."""
    with pytest.raises(PermanentError, match=r"MadeSink\.create_writer\(\) .* not NoneType"):
        await started_sink(SinkOperator(MadeSink(None)), Attempt())
