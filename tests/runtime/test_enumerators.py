"""Split enumerators beside the coordinator: what they assign and when it is delivered."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from operators.source import (
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from runtime.checkpoint_messages import SubtaskId
from runtime.clock import SimulatedClock
from runtime.enumerators import SplitEnumerators
from runtime.errors import OperatorFailure
from runtime.plan import PlannedOperator
from tests.runtime.planned import planned, vertex

FIRST, SECOND = SubtaskId(1, 0), SubtaskId(1, 1)


class Discovery(SplitEnumerator):
    """Remembers every split that it assigned."""

    def __init__(self, context: SplitEnumeratorContext, events: list[str]) -> None:
        super().__init__(context)
        self.known: list[str] = []
        self.events = events

    async def start(self) -> None:
        self.events.append("started")

    async def run(self) -> None:
        self.events.append("ran")

    def assign(self, subtask: int, split: str) -> None:
        self.known.append(split)
        self.context.assign_splits(subtask, [split])

    def snapshot_state(self) -> bytes:
        return json.dumps(self.known).encode()

    def restore_state(self, state: bytes) -> None:
        self.known = json.loads(state)

    async def close(self) -> None:
        self.events.append("closed")


class Topic(Source[str]):
    def __init__(self) -> None:
        self.events: list[str] = []
        self.enumerator: Discovery | None = None

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[str]:
        raise AssertionError("no reader is needed here")

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator:
        self.enumerator = Discovery(context, self.events)
        return self.enumerator


class Deliveries:
    """Every delivery in order, by reader."""

    def __init__(self) -> None:
        self.made: list[tuple[SubtaskId, object]] = []
        self.failures: list[tuple[str, BaseException]] = []

    def add_splits(self, subtask: SubtaskId, splits: Sequence[object]) -> None:
        self.made.append((subtask, *splits))  # type: ignore[arg-type]  # one split at a time here

    def no_more_splits(self, subtask: SubtaskId) -> None:
        self.made.append((subtask, None))

    def enumerator_failed(self, source: PlannedOperator, error: BaseException) -> None:
        self.failures.append((source.uid, error))


class Hosted:
    def __init__(self, states: dict[str, bytes] | None = None, *, finished: bool = False) -> None:
        self.source = Topic()
        operator = replace(planned("clicks", parallelism=2), source=self.source)
        self.deliveries = Deliveries()
        self.enumerators = SplitEnumerators(
            [vertex(1, operator), vertex(2, planned("sink"))],
            SimulatedClock(),
            self.deliveries,
            states,
            lambda _: finished,
        )

    @property
    def discovery(self) -> Discovery:
        assert self.source.enumerator is not None
        return self.source.enumerator


def test_an_assignment_is_delivered_at_once_without_a_checkpoint() -> None:
    """To the reader it names."""
    hosted = Hosted()
    hosted.discovery.assign(1, "p0")

    assert hosted.deliveries.made == [(SECOND, "p0")]


def test_an_assignment_after_the_cut_waits_for_the_readers_own_cut() -> None:
    """The state has not heard of it, so neither may the reader's state of that checkpoint."""
    hosted = Hosted()
    states = hosted.enumerators.cut(5)
    hosted.discovery.assign(0, "p0")
    hosted.discovery.assign(1, "p1")
    before = list(hosted.deliveries.made)

    hosted.enumerators.passed(5, SECOND)

    assert states == {"clicks": b"[]"}
    assert (before, hosted.deliveries.made) == ([], [(SECOND, "p1")])
    assert hosted.enumerators.hold_back


def test_an_assignment_before_the_cut_is_in_the_state_and_with_the_reader() -> None:
    """Both know it in that checkpoint."""
    hosted = Hosted()
    hosted.discovery.assign(0, "p0")

    assert hosted.enumerators.cut(5) == {"clicks": b'["p0"]'}
    assert hosted.deliveries.made == [(FIRST, "p0")]


def test_the_end_of_a_checkpoint_releases_what_it_held_back() -> None:
    """Complete or aborted: no reader's cut of it will follow."""
    hosted = Hosted()
    hosted.enumerators.cut(5)
    hosted.discovery.assign(0, "p0")

    hosted.enumerators.ended(5)

    assert hosted.deliveries.made == [(FIRST, "p0")]
    assert not hosted.enumerators.hold_back


def test_deliveries_to_a_reader_keep_their_order() -> None:
    """The word that nothing more comes stays behind the splits that came before it."""
    hosted = Hosted()
    hosted.enumerators.cut(5)
    hosted.discovery.assign(0, "p0")
    hosted.discovery.assign(0, "p1")
    hosted.discovery.context.signal_no_more_splits()

    hosted.enumerators.passed(5, FIRST)

    assert hosted.deliveries.made == [(FIRST, "p0"), (FIRST, "p1"), (FIRST, None)]


def test_every_earlier_cut_holds_an_assignment_back() -> None:
    """With two checkpoints pending both have to pass the reader."""
    hosted = Hosted()
    hosted.enumerators.cut(5)
    hosted.enumerators.cut(6)
    hosted.discovery.assign(0, "p0")

    hosted.enumerators.passed(5, FIRST)
    before = list(hosted.deliveries.made)
    hosted.enumerators.passed(6, FIRST)

    assert (before, hosted.deliveries.made) == ([], [(FIRST, "p0")])


def test_a_restored_enumerator_knows_its_splits() -> None:
    """It gets its state before it starts, and is told that it was restored."""
    hosted = Hosted({"clicks": b'["p0"]', "other": b"?"})

    assert hosted.discovery.known == ["p0"]
    assert (hosted.discovery.context.restored, Hosted().discovery.context.restored) == (True, False)


async def test_life_runs_from_start_to_close() -> None:
    """Each is called once, in order."""
    hosted = Hosted()
    await hosted.enumerators.start()
    for _, run in hosted.enumerators.runs():
        await run()
    await hosted.enumerators.close()

    assert hosted.source.events == ["started", "ran", "closed"]


async def test_the_enumerator_of_a_finished_source_only_keeps_its_state() -> None:
    """It discovers nothing, and its state goes on into the next checkpoints."""
    hosted = Hosted({"clicks": b'["p0"]'}, finished=True)
    await hosted.enumerators.start()

    assert (hosted.source.events, hosted.enumerators.runs()) == ([], [])
    assert hosted.enumerators.cut(5) == {"clicks": b'["p0"]'}


async def test_a_failed_start_says_whose_it_was() -> None:
    """The error itself stays what it is, as the cause."""
    hosted = Hosted()

    async def start() -> None:
        raise ConnectionError("no broker")

    hosted.discovery.start = start  # type: ignore[method-assign]  # this one fails

    with pytest.raises(OperatorFailure, match=r"'operator clicks'.*discovering splits") as failed:
        await hosted.enumerators.start()

    assert isinstance(failed.value.__cause__, ConnectionError)


def test_a_failure_is_reported_with_its_source() -> None:
    """The job fails in that operator."""
    hosted = Hosted()
    error = ConnectionError("broker gone")
    hosted.discovery.context.fail(error)

    assert hosted.deliveries.failures == [("clicks", error)]


def test_an_assignment_to_nobody_is_refused() -> None:
    """The error names source, subtask and parallelism."""
    with pytest.raises(ValueError, match="'operator clicks' assigns splits to subtask 2 of 2"):
        Hosted().discovery.assign(2, "p0")
