"""Sources: timestamps, a watermark per split, one status, the reader's life."""

from collections.abc import Sequence
from typing import Any

import pytest

from operators.elements import ACTIVE, IDLE, Watermark
from operators.errors import WrongResultError
from operators.event_time import RECORDS_BETWEEN_WATERMARKS_MAX
from operators.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from operators.source_operator import SourceOperator
from operators.watermarks import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from tests.operators.fakes import Driver, FakeContext

NOTHING = InputStatus.NOTHING_AVAILABLE
END = InputStatus.END_OF_INPUT
MONOTONOUS: WatermarkStrategy[Any] = WatermarkStrategy.for_monotonous_timestamps()


class ScriptReader(SourceReader[Any]):
    """Hands out what a test puts into `script`; a str before it opens, "-name" closes a split."""

    def __init__(self, context: SourceReaderContext) -> None:
        super().__init__(context)
        self.script: list[SplitBatch | InputStatus | str] = []
        self.calls: list[str] = []

    def initialize_state(self) -> None:
        self.calls.append("initialize_state")

    async def start(self) -> None:
        self.calls.append("start")

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        while self.script:
            step = self.script.pop(0)
            if not isinstance(step, str):
                return step
            if step.startswith("-"):
                self.context.split_closed(step[1:])
            else:
                self.context.split_opened(step)
        return NOTHING

    def add_splits(self, splits: Sequence[object]) -> None:
        self.calls.append(f"add_splits {splits}")

    def no_more_splits(self) -> None:
        self.calls.append("no_more_splits")

    def snapshot_state(self, checkpoint_id: int) -> None:
        self.calls.append(f"snapshot {checkpoint_id}")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.calls.append(f"complete {checkpoint_id}")

    async def close(self) -> None:
        self.calls.append("close")


class ScriptSource(Source[Any]):
    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_reader(self, context: SourceReaderContext) -> ScriptReader:
        return ScriptReader(context)


class AssignedSource(ScriptSource):
    """Its splits are assigned by an enumerator."""

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator | None:
        raise AssertionError


class Running:
    """A source operator with its reader, driven by hand."""

    def __init__(self, source: Source[Any], strategy: WatermarkStrategy[Any]) -> None:
        self.context = FakeContext()
        self.operator = SourceOperator(source, strategy)
        self.driver = Driver(self.operator, self.context)
        reader = self.operator._reader
        assert isinstance(reader, ScriptReader)
        self.reader = reader

    async def start(self) -> "Running":
        await self.operator.start()
        return self

    def poll(self, *script: SplitBatch | InputStatus | str) -> list[Any] | InputStatus:
        self.reader.script += script
        polled = self.operator.poll(1_000)
        return polled if isinstance(polled, InputStatus) else self.driver.collect(polled)

    def tick(self) -> list[Any]:
        return self.driver.processing_time(self.context.clock.now_ms() + 200)


async def running(
    strategy: WatermarkStrategy[Any] = MONOTONOUS, source: type[ScriptSource] = ScriptSource
) -> Running:
    return await Running(source(), strategy).start()


def records(*timestamps: int, split: str | None = None) -> SplitBatch:
    return SplitBatch([f"r{t}" for t in timestamps], list(timestamps), split)


async def test_the_reader_lives_as_long_as_the_operator() -> None:
    """Every call reaches it."""
    source = await running()
    operator = source.operator
    operator.add_splits(["s"])
    operator.no_more_splits()
    operator.snapshot_state(3)
    operator.notify_checkpoint_complete(3)
    operator.close()
    await operator.close_async()
    assert source.reader.calls == [
        "initialize_state",
        "start",
        "add_splits ['s']",
        "no_more_splits",
        "snapshot 3",
        "complete 3",
        "close",
    ]


async def test_closing_before_there_is_a_reader_is_harmless() -> None:
    """A task closes its operators whatever happened before."""
    operator = SourceOperator(ScriptSource(), MONOTONOUS)
    operator.close()
    await operator.close_async()


async def test_timestamps_of_the_source_are_kept_without_assigner() -> None:
    """Without watermarks as well."""
    source = await running(WatermarkStrategy.no_watermarks())
    assert source.poll(records(5, 3)) == [("r5", 5), ("r3", 3)]
    assert source.poll(SplitBatch(["x"])) == [("x", None)]
    assert source.context.clock.scheduled() == []


async def test_watermarks_come_by_the_clock_and_stop_with_the_input() -> None:
    """The end of time is the task's affair."""
    source = await running()
    source.poll(records(5, 9))
    assert source.tick() == [Watermark(8)]
    assert source.poll(END) is END
    assert source.context.clock.scheduled() == []


async def test_at_full_speed_a_watermark_comes_each_thousand_records() -> None:
    """Though the clock stands still."""
    source = await running()
    count = RECORDS_BETWEEN_WATERMARKS_MAX - 1
    assert Watermark(count - 1) not in source.poll(records(*range(count)))  # type: ignore[operator]  # a list
    assert source.poll(records(count)) == [(f"r{count}", count), Watermark(count - 1)]
    assert source.poll(records(count + 1)) == [(f"r{count + 1}", count + 1)]


async def test_the_slowest_split_holds_back_the_watermark_until_it_is_closed() -> None:
    """Its last records may come with the very poll that closes it."""
    source = await running()
    source.poll("a", "b", records(50, split="a"))
    assert source.tick() == []
    assert source.poll("-b", records(7, split="b")) == [("r7", 7)]
    assert source.tick() == [Watermark(49)]


async def test_a_split_that_holds_back_is_named_by_its_watermark() -> None:
    """A page can show it."""
    source = await running()
    source.poll("a", "b", records(50, split="a"))
    source.tick()
    assert list(source.operator.split_watermarks()) == [
        ("a", 49, False),
        ("b", -(2**63), False),
    ]


async def test_a_subtask_without_split_is_idle_at_once_and_active_with_the_first() -> None:
    """Others need not wait for it."""
    source = await running(source=AssignedSource)
    assert source.poll() == [IDLE]
    assert source.poll() is NOTHING
    assert source.poll("a", records(5, split="a")) == [ACTIVE, ("r5", 5)]
    assert source.poll("-a") == [IDLE]
    assert source.poll("b") == [ACTIVE]
    assert source.tick() == []


async def test_a_source_without_announced_splits_is_never_idle_by_itself() -> None:
    """It is one split from the start."""
    source = await running()
    assert source.poll() is NOTHING
    assert source.tick() == []


async def test_a_quiet_split_is_left_out_and_all_quiet_is_idle() -> None:
    """The next records bring it back with the watermark that they cause."""
    source = await running(MONOTONOUS.with_idleness(300))
    source.poll("a", "b", records(50, split="a"))
    source.poll(records(10, split="b"))
    seen = [source.tick()]
    for timestamp in (60, 70, 80, 90):
        source.poll(records(timestamp, split="a"))
        seen.append(source.tick())
    assert seen == [[Watermark(9)], [], [], [Watermark(79)], [Watermark(89)]]
    assert source.poll() is NOTHING
    assert [source.tick() for _ in range(4)] == [[], [], [IDLE], []]
    source.poll(records(100, split="a"))
    assert source.tick() == [ACTIVE, Watermark(99)]


async def test_a_source_that_is_held_up_does_not_become_idle() -> None:
    """Nobody takes its records; that is not silence."""
    source = await running(MONOTONOUS.with_idleness(300))
    source.poll(records(50))
    ticks = [source.tick() for _ in range(10)]
    assert ticks == [[Watermark(49)], *([[]] * 9)]
    assert source.poll() is NOTHING
    assert [source.tick() for _ in range(3)].count([IDLE]) == 1


async def test_new_records_during_a_hold_up_end_the_silence_before_it() -> None:
    """From `available` on the reader waits for the task, not the other way round."""
    source = await running(MONOTONOUS.with_idleness(300))
    assert source.poll() is NOTHING
    assert source.tick() == []
    source.reader.context.available()
    assert [source.tick() for _ in range(10)] == [[]] * 10


async def test_side_outputs_of_the_reader_keep_their_tags() -> None:
    """They follow the records of their batch."""
    source = await running()
    batch = SplitBatch(["x"], [1], side=[("bad", 1), ("worse", 2), ("bad", 3)])
    assert source.poll(batch) == [
        ("x", 1),
        ("bad", 1, None),
        ("bad", 3, None),
        ("worse", 2, None),
    ]
    assert source.poll(SplitBatch([], side=[("bad", 4)])) == [("bad", 4, None)]


async def test_a_bad_timestamp_is_named_by_position_and_origin() -> None:
    """The task finds topic, partition and offset with them."""
    source = await running(MONOTONOUS.with_timestamp_assigner(lambda value, _: value))
    with pytest.raises(TypeError, match="must be an int in ms"):
        source.poll(SplitBatch([1, "x"], origin="clicks@{}".format))
    position = source.operator.position()
    assert position is not None
    assert source.operator.origin is not None
    assert source.operator.origin(position) == "clicks@1"


async def test_a_custom_generator_of_a_split_is_combined_at_once() -> None:
    """Its watermark stands behind its record if the other splits are as far."""

    class Each(WatermarkGenerator[Any]):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark(event_timestamp)

        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            return None

    source = await running(WatermarkStrategy.for_generator(Each))
    assert source.poll("a", "b", records(1, 2, split="a")) == [("r1", 1), ("r2", 2)]
    assert source.poll(records(1, 3, split="b")) == [
        ("r1", 1),
        Watermark(1),
        ("r3", 3),
        Watermark(2),
    ]


async def test_an_event_of_the_reader_wakes_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """New records and changes of its splits alike."""
    source = await running()
    woken: list[str] = []
    monkeypatch.setattr(source.context, "output_freed", lambda: woken.append("woken"))
    source.reader.context.available()
    source.reader.context.split_opened("a")
    source.reader.context.split_closed("a")
    assert woken == ["woken"] * 3


async def test_a_split_that_is_opened_again_starts_anew() -> None:
    """Also where its close has not been noticed yet."""
    source = await running()
    source.poll("a", records(50, split="a"))
    source.tick()
    assert source.poll("-a", "a", records(7, split="a")) == [("r7", 7)]
    assert source.tick() == []
    assert source.poll(records(60, split="a")) == [("r60", 60)]
    assert source.tick() == [Watermark(59)]


@pytest.mark.parametrize("wrong", [[1, 2], (), None, "r", {}.items()], ids=repr)
async def test_what_is_no_batch_and_no_status_is_refused(wrong: Any) -> None:
    """Its elements would be lost, or taken for something else."""
    run = await running()
    run.reader.poll = lambda records_max: wrong  # type: ignore[method-assign]  # wrong on purpose
    with pytest.raises(
        WrongResultError, match=r"ScriptReader\.poll\(\) has to return a SplitBatch"
    ):
        run.poll()


async def test_a_reader_that_polls_by_coroutine_is_refused() -> None:
    """Without a warning that nobody awaited it."""

    async def poll(records_max: int) -> SplitBatch:
        return records(1)

    run = await running()
    run.reader.poll = poll  # type: ignore[method-assign, assignment]  # wrong on purpose
    with pytest.raises(WrongResultError, match=r"poll\(\) has to return .* write it with def"):
        run.poll()


@pytest.mark.parametrize("timestamps", [[], [1], [1, 2, 3]], ids=len)
def test_a_batch_has_a_timestamp_for_each_value(timestamps: list[int | None]) -> None:
    """Records without one would be lost on the way."""
    with pytest.raises(WrongResultError, match=rf"2 values, {len(timestamps)} timestamps"):
        SplitBatch(["a", "b"], timestamps)


def test_a_batch_takes_a_list() -> None:
    """What is no list could not be joined with other batches."""
    with pytest.raises(WrongResultError, match="a list of values"):
        SplitBatch((1, 2))  # type: ignore[arg-type]  # wrong on purpose


def test_a_source_that_makes_no_reader_is_refused() -> None:
    """The class itself is the usual mistake."""

    class Classes(ScriptSource):
        def create_reader(self, context: SourceReaderContext) -> Any:
            return ScriptReader

    with pytest.raises(WrongResultError, match=r"Classes\.create_reader\(\) .* a SourceReader"):
        Running(Classes(), MONOTONOUS)


@pytest.mark.parametrize("method", ["start", "close"])
async def test_a_reader_that_starts_or_closes_by_def_is_refused(method: str) -> None:
    """It has to be awaited."""
    run = Running(ScriptSource(), MONOTONOUS)
    setattr(run.reader, method, lambda: None)
    called = run.operator.start if method == "start" else run.operator.close_async
    with pytest.raises(WrongResultError, match=rf"{method}\(\) .* async def"):
        await called()


def test_a_source_has_no_input() -> None:
    """A wrong plan is told so."""
    with pytest.raises(TypeError, match="no input"):
        SourceOperator(ScriptSource(), MONOTONOUS).process_batch(None)  # type: ignore[arg-type]  # on purpose
