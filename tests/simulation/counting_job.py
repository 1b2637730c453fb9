"""The job that simulations run: counts, timers and windows over a source that can be replayed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TypeVar

from operators.builtin import CollectionSource
from operators.datastream import DataStream
from operators.process_functions import KeyedProcessFunction
from operators.runtime_context import RuntimeContext
from operators.watermarks import WatermarkStrategy
from operators.window_contents import WindowCount
from operators.windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from runtime.config_views import CheckpointConfig
from runtime.environment import StreamExecutionEnvironment
from runtime.simulation import Simulation
from statebackends.descriptors import ValueStateDescriptor
from tests.simulation.oracle import SLIDE_MS, TICKS, WINDOW_MS, Record, Row
from tests.simulation.outside import AtLeastOnceSink, Outside, TransactionalSink

T = TypeVar("T")

KEYS = "abcdefg"
END_MS = 1_000_000
"""An event time after all records."""

DISORDER_MS = 40


def records(count: int, random: Random) -> list[Record]:
    """Records of keys with unequal shares, a little out of the order of their times."""
    return [
        (KEYS[number * number % 31 % len(KEYS)], 3 * number + random.randrange(DISORDER_MS))
        for number in range(count)
    ]


class RunningCount(KeyedProcessFunction[str, Record, Row]):
    """Numbers the records of each key; at the end a timer tells how many there were.

    A chain of processing-time timers per key ticks meanwhile.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def open(self, runtime_context: RuntimeContext) -> None:
        count: ValueStateDescriptor[int] = ValueStateDescriptor("count")
        ticks: ValueStateDescriptor[int] = ValueStateDescriptor("ticks")
        self._count = runtime_context.get_state(count)
        self._ticks = runtime_context.get_state(ticks)

    def process_element(self, value: Record, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        self._simulation.pass_point("count")
        number = (self._count.value() or 0) + 1
        self._count.update(number)
        timers = ctx.timer_service()
        timers.register_event_time_timer(END_MS)
        if number == 1:
            timers.register_processing_time_timer(timers.current_processing_time() + 5)
        yield ("count", value[0], number)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        self._simulation.pass_point("timer")
        key = ctx.get_current_key()
        if timestamp == END_MS:
            yield ("total", key, self._count.value() or 0)
            return
        tick = (self._ticks.value() or 0) + 1
        self._ticks.update(tick)
        yield ("tick", key, tick)
        if tick < TICKS:
            ctx.timer_service().register_processing_time_timer(timestamp + 5)


class CountingJob:
    """Counts to a transactional sink, windows to one as well and to an at-least-once sink.

    What may differ without a change of the results is drawn from the simulation's seed.
    """

    def __init__(self, *, seed: int, count: int = 150) -> None:
        self._random = Random(seed)
        self.inputs = records(count, self._random)
        self._spread = self._random.random() < 0.4
        self.outside = Outside()

    def __call__(self, env: StreamExecutionEnvironment, simulation: Simulation) -> None:
        random = self._random
        env.set_max_parallelism(16)
        env.enable_checkpointing(random.choice((10, 15, 30)))
        self._configure(env.get_checkpoint_config())
        if random.random() < 0.3:
            env.disable_operator_chaining()
        watermarks = WatermarkStrategy.for_bounded_out_of_orderness(DISORDER_MS)
        strategy = watermarks.with_timestamp_assigner(lambda record, _: record[1])
        source = CollectionSource(self.inputs)
        stream = env.from_source(source, strategy, "records").uid("records")
        if self._spread:
            stream = stream.rebalance().map(_same).uid("spread").set_parallelism(2)
        transactions = TransactionalSink(self.outside, simulation)
        counts = stream.key_by(_key).process(RunningCount(simulation)).name("count").uid("count")
        counts.sink_to(transactions).name("counts").uid("counts")
        rows = self._windows(stream, simulation)
        rows.sink_to(transactions).name("windows").uid("windows")
        written = AtLeastOnceSink(self.outside, simulation)
        rows.sink_to(written).name("written").uid("written")

    def _configure(self, checkpoints: CheckpointConfig) -> None:
        random = self._random
        checkpoints.set_max_concurrent_checkpoints(random.choice((1, 1, 3)))
        # A checkpoint that expires is to be met, and is not to end the job.
        timeout_ms, tolerated = random.choice(((300, 1_000), (5_000, 0), (5_000, 3)))
        checkpoints.set_checkpoint_timeout(timeout_ms)
        checkpoints.set_tolerable_checkpoint_failure_number(tolerated)

    def _windows(self, stream: DataStream[Record], simulation: Simulation) -> DataStream[Row]:
        """Tumbling windows by the built-in count, sliding ones by a reduce function."""

        def add(one: Record, other: Record) -> Record:
            simulation.pass_point("reduce")
            return (one[0], one[1] + other[1])

        keyed = stream.key_by(_key)
        tumbling = keyed.window(TumblingEventTimeWindows.of(WINDOW_MS)).count().uid("tumbling")
        sliding = (
            keyed.window(SlidingEventTimeWindows.of(WINDOW_MS, SLIDE_MS)).reduce(add).uid("sliding")
        )
        first = tumbling.map(_tumbling_row).uid("tumbling rows")
        second = sliding.map(_sliding_row).uid("sliding rows")
        return first.union(second).map(_same).uid("rows")


def _key(record: Record) -> str:
    return record[0]


def _tumbling_row(window: WindowCount) -> Row:
    return ("tumbling", window.key, window.start, window.count)


def _sliding_row(total: Record) -> Row:
    return ("sliding", *total)


def _same(record: T) -> T:
    return record
