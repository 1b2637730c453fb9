"""Little input that turns into much: queues stay at their bound, and the task can be spoken to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from operators.stream_operator import BATCH_RECORDS_MAX
from runtime import (
    CollectSink,
    Configuration,
    JobClient,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from runtime.channel import Channel

CAPACITY = 256


class Watch:
    """Looks at all queues of the job whenever one of its functions is called."""

    def __init__(self) -> None:
        self.client: JobClient | None = None
        self.most_queued = 0
        self.results = 0

    def channels(self) -> list[Channel]:
        assert self.client is not None
        run = self.client._job._run
        assert run is not None
        assert run._attempt is not None
        return run._attempt.deployment.channels

    def look(self) -> None:
        self.most_queued = max(self.most_queued, *(channel.size for channel in self.channels()))

    def result(self, _: object) -> None:
        self.results += 1
        if self.results % 100 == 0:
            self.look()

    def __deepcopy__(self, _: object) -> Watch:
        return self


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_integer("riverrun.channel.capacity", CAPACITY)
    )


class Item:
    """An output that knows how many of its kind there are."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self) -> None:
        Item.alive += 1
        Item.most = max(Item.most, Item.alive)

    def __del__(self) -> None:
        Item.alive -= 1


class Explosion(KeyedProcessFunction[int, int, Item]):
    """Turns a number into so many items, looking at the queues on the way."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def items(self, count: int) -> Iterator[Item]:
        for number in range(count):
            if number % 50 == 0:
                self._watch.look()
            yield Item()

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Item]:
        return self.items(value)


@pytest.mark.parametrize("explode_in", ["flat_map", "process"])
async def test_a_generator_that_explodes_is_suspended(
    env: StreamExecutionEnvironment, explode_in: str
) -> None:
    """Neither queue nor memory ever hold more than the bound and a batch at each step."""
    watch = Watch()
    Item.alive = Item.most = 0

    numbers = env.from_collection([100_000])
    if explode_in == "flat_map":
        exploded = numbers.flat_map(Explosion(watch).items)
    else:
        exploded = numbers.key_by(lambda _: 0).process(Explosion(watch))
    items: Any = exploded.map(lambda item: item).start_new_chain()
    items.sink_to(CollectSink(watch.result))
    watch.client = env.execute_async("explosion")
    await watch.client
    assert watch.results == 100_000
    assert CAPACITY <= watch.most_queued < CAPACITY + BATCH_RECORDS_MAX
    assert Item.most <= CAPACITY + 3 * BATCH_RECORDS_MAX


class LastMarks(WatermarkGenerator[tuple[int, int]]):
    """No watermark before the record with key -1."""

    def on_event(self, value: tuple[int, int], timestamp: int, output: WatermarkOutput) -> None:
        if value[0] < 0:
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        return None


@pytest.mark.parametrize(("keys", "windows"), [(30_000, 1), (30, 1_000)])
@pytest.mark.parametrize("contents", ["count", "process"])
async def test_windows_due_at_one_watermark_come_out_by_the_batch(
    env: StreamExecutionEnvironment, keys: int, windows: int, contents: str
) -> None:
    """The watermark follows all of them, and the queue behind stays at its bound."""
    watch = Watch()
    records = [(key, window * 1_000) for window in range(windows) for key in range(keys)]
    records.append((-1, windows * 2_000))
    strategy = WatermarkStrategy.for_generator(LastMarks).with_timestamp_assigner(
        lambda record, _: record[1]
    )
    timed = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
    windowed = timed.key_by(0).window(TumblingEventTimeWindows.of(timedelta(seconds=1)))
    results: Any = (
        windowed.count()
        if contents == "count"
        else windowed.apply(lambda key, window, values: [len(list(values))])
    )
    results.map(lambda result: result).start_new_chain().sink_to(CollectSink(watch.result))
    watch.client = env.execute_async("many windows")
    await watch.client
    assert watch.results == keys * windows + 1
    assert watch.most_queued < CAPACITY + BATCH_RECORDS_MAX


class SlowWithTimer(KeyedProcessFunction[int, int, int]):
    """Works 1 ms a record; notes after which record its timer came."""

    def __init__(self) -> None:
        self.record = -1
        self.timer_after: list[int] = []

    def __deepcopy__(self, _: object) -> SlowWithTimer:
        return self

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.record = value
        if value == 0:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + 1)
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        self.timer_after.append(self.record)


async def test_a_timer_comes_between_the_records_of_slow_work(
    env: StreamExecutionEnvironment,
) -> None:
    """It need not wait until all that is queued has been worked through."""
    function = SlowWithTimer()
    env.from_collection(range(250)).key_by(lambda _: 0).process(function).sink_to(CollectSink())
    await env.execute_async("slow work")
    assert function.record == 249
    assert len(function.timer_after) == 1
    assert function.timer_after[0] < 200


async def test_a_cancelled_job_leaves_in_the_middle_of_an_explosion(
    env: StreamExecutionEnvironment,
) -> None:
    """A record whose outputs never end does not hold it."""
    begun = asyncio.Event()

    def explode(value: int) -> Iterator[int]:
        while True:
            value += 1
            if value == 100_000:
                begun.set()
            yield value

    exploded = env.from_collection([0]).flat_map(explode)
    exploded.map(lambda value: value).start_new_chain().sink_to(CollectSink(lambda _: None))
    client = env.execute_async("endless")
    await begun.wait()
    async with asyncio.timeout(10):
        await client.cancel()
