"""The operator harness: real tasks, real state and real snapshot files, driven step by step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Self

from operators.elements import ACTIVE, IDLE, RecordBatch, StreamElement, Watermark
from operators.source import Source
from operators.stream_operator import OperatorFactory
from operators.time import TimeLike, to_ms
from operators.watermarks import WatermarkStrategy
from runtime.clock import SimulatedClock
from runtime.errors import OperatorFailure
from runtime.plan import ExecutionPlan
from runtime.testing.attempt import HarnessAttempt, HarnessSettings
from runtime.testing.outputs import Emitted, EmittedRecord, OutputRecorder
from runtime.testing.pipeline import Build, build_function, build_operator, build_source, plan_of
from runtime.testing.snapshot import OperatorSnapshot
from statebackends.backend import KeyedStateBackendFactory
from statebackends.clock import Clock
from statebackends.hash_map import HashMapStateBackend


class OperatorHarness:
    """Runs operators as a job would, one step at a time, and says what came out.

    Records, watermarks and the clock come from the test; nothing happens in between. Every call
    returns what it made the operators put out; `emitted` has all of it. The operators run in the
    runtime's own tasks, with their channels, key groups, mail and snapshots, but without an event
    loop: the harness works in plain test functions and in coroutines.

    An exception of user code comes out of the step that raised it, with a note that says in which
    operator it was and on which record. The harness is of no more use then, except to `close`.

    Use it in a ``with`` statement where user functions must be closed.
    """

    def __init__(
        self,
        build: Build,
        *,
        parallelism: int = 1,
        max_parallelism: int = 128,
        processing_time: int = 0,
        clock: Clock | None = None,
        batch_records: int = 1_024,
        auto_watermark_interval: TimeLike = 200,
        channel_capacity: int = 4_096,
        chaining: bool = True,
        pauses: bool = False,
        restore_between_steps: bool = False,
        through_valve: bool = True,
        state_backend: KeyedStateBackendFactory | None = None,
    ) -> None:
        """Builds and opens the operators.

        Args:
            build: adds the operators under test to the stream it is given; returns their result.
            parallelism: subtasks of operators that do not say themselves.
            max_parallelism: key groups.
            processing_time: where the clock stands, in ms since the epoch.
            clock: a clock of your own in place of a simulated one; see `settle`.
            batch_records: most records in a batch; 1 processes record by record.
            auto_watermark_interval: how often watermark generators are asked.
            channel_capacity: bound of the channels between tasks, in records.
            chaining: whether operators share tasks.
            pauses: whether tasks pause at each output, as under full load; timers and other tasks
                come in between.
            restore_between_steps: snapshots, throws everything away and restores before each
                step. The watermark is put back, as if it had come again, so that the outputs must
                be those of an operator that was never restored.
            through_valve: watermarks and statuses take the way that they take in a job, where
                those that do not rise and those of an idle input are dropped. False hands each
                one straight to the first operator, as Flink's harness does.
            state_backend: makes the keyed state; heap by default.

        Raises:
            TypeError, ValueError: the operators make no job that could run.
        """
        self._build = build
        self._recorder = OutputRecorder()
        self._max_parallelism = max_parallelism
        self._chaining = chaining
        self._restores = restore_between_steps
        self.clock: Clock = SimulatedClock(processing_time) if clock is None else clock
        """The clock of the operators; moved by `set_processing_time` and `pass_time`."""
        self._settings = HarnessSettings(
            clock=self.clock,
            backend=state_backend or HashMapStateBackend().create_keyed_state_backend,
            auto_watermark_interval_ms=to_ms(auto_watermark_interval, "auto_watermark_interval"),
            channel_capacity=channel_capacity,
            batch_records=batch_records,
            pauses=pauses,
            through_valve=through_valve,
        )
        self._idle = False
        self._failed = False
        self._closed = False
        self._attempts = 0
        self._parallelism = parallelism
        self._attempt = self._start(None)

    # -- making one -----------------------------------------------------------------------------

    @classmethod
    def of(cls, build: Build, **options: Any) -> Self:
        """The operators that `build` adds to a stream: ``lambda s: s.key_by(0).window(...)...``.

        The options are those of the constructor.
        """
        return cls(build, **options)

    @classmethod
    def of_function(
        cls,
        function: object,
        key_selector: Callable[[Any], Hashable] | None = None,
        **options: Any,
    ) -> Self:
        """The operator that runs a function object, on a stream keyed by `key_selector` if given.

        Raises `TypeError` where no operator fits, or a keyed one lacks its key selector.
        """
        return cls(build_function(function, key_selector), **options)

    @classmethod
    def of_operator(
        cls,
        factory: OperatorFactory,
        key_selector: Callable[[Any], Hashable] | None = None,
        *,
        name: str = "Operator",
        **options: Any,
    ) -> Self:
        """An operator of your own; it has keyed state if there is a `key_selector`."""
        return cls(build_operator(factory, key_selector, name), **options)

    @classmethod
    def of_source(
        cls,
        source: Source[Any],
        watermark_strategy: WatermarkStrategy[Any] | None = None,
        build: Build | None = None,
        **options: Any,
    ) -> Self:
        """A source, with the operators that `build` adds behind it, in place of given records.

        The source reads whenever it has something, which it says by `SourceReaderContext.available`
        before a `settle`. Splits come by `add_splits`: its enumerator is not run.
        """
        strategy = watermark_strategy or WatermarkStrategy.no_watermarks()
        return cls(build_source(source, strategy, build), **options)

    # -- steps ----------------------------------------------------------------------------------

    def process(self, value: object, timestamp: int | None = None) -> list[Emitted]:
        """One record."""
        return self.process_all([value], [timestamp])

    def process_all(
        self, values: Iterable[object], timestamps: Sequence[int | None] | None = None
    ) -> list[Emitted]:
        """Records that are all there at once, in batches as large as they may be."""
        records = list(values)
        times = None if timestamps is None else list(timestamps)
        if times is not None and len(times) != len(records):
            raise ValueError(f"{len(records)} values and {len(times)} timestamps")
        return self._step(lambda attempt: attempt.give_all(self._batches(records, times)))

    def watermark(self, timestamp: int) -> list[Emitted]:
        """A watermark."""
        return self._step(lambda attempt: attempt.control(Watermark(timestamp)))

    def idle(self) -> list[Emitted]:
        """The input goes idle."""
        emitted = self._step(lambda attempt: attempt.control(IDLE))
        self._idle = True
        return emitted

    def active(self) -> list[Emitted]:
        """The input becomes active again."""
        emitted = self._step(lambda attempt: attempt.control(ACTIVE))
        self._idle = False
        return emitted

    def set_processing_time(self, now_ms: int) -> list[Emitted]:
        """Moves the clock in one jump: what becomes due runs when it is there already.

        Raises `ValueError` for a time in the past.
        """
        return self._step(lambda attempt: attempt.advance_clock(now_ms))

    def pass_time(self, duration: TimeLike) -> list[Emitted]:
        """Lets time pass: each thing that becomes due runs at its own time."""
        end_ms = self.clock.now_ms() + to_ms(duration, "duration")
        return self._step(lambda attempt: attempt.pass_time(end_ms))

    def settle(self) -> list[Emitted]:
        """Lets the operators do what became possible by no step of the harness.

        After a clock of the test's own was moved, or a source got something to read.
        """
        return self._step(HarnessAttempt.run)

    def add_splits(self, splits: Sequence[object], subtask: int = 0) -> list[Emitted]:
        """Assigns splits to a subtask of the source under test."""
        return self._step(lambda attempt: attempt.add_splits(splits, subtask))

    def end_input(self) -> list[Emitted]:
        """The input ends by itself: the final watermark, then the operators' last words."""
        return self._step(lambda attempt: attempt.end())

    def finish_operators(self) -> list[Emitted]:
        """Tells the operators that the input ended, without final watermark, and goes on.

        A job never does that; it is what `endInput` of Flink's harness does.
        """
        return self._step(lambda attempt: attempt.tell_end())

    # -- snapshots ------------------------------------------------------------------------------

    def snapshot(self) -> OperatorSnapshot:
        """A checkpoint, by a barrier through all tasks; it is complete and notified."""
        self._check_usable()
        return self._attempt.snapshot()

    def restore(
        self,
        snapshot: OperatorSnapshot | None = None,
        *,
        parallelism: int | None = None,
        keep_watermark: bool = False,
    ) -> list[Emitted]:
        """Throws the operators away and starts new ones from `snapshot`, by default taken now.

        The clock stays. The watermark begins again at -2**63, as in a job, unless
        `keep_watermark` puts it back without firing anything. Returns what the start put out.

        Raises `RecoveryError` if the operators do not fit the snapshot.
        """
        self._check_usable()
        before = len(self._recorder.emitted)
        if snapshot is None:
            snapshot = self._attempt.snapshot()
        self._parallelism = self._parallelism if parallelism is None else parallelism
        watermarks = self._attempt.watermarks() if keep_watermark else {}
        self._attempt.close()
        self._attempt = self._start(snapshot)
        if keep_watermark:
            self._attempt.set_watermarks(watermarks)
            if self._idle:
                # The new input says so again; that it is known on the way out is nothing new.
                known = len(self._recorder.emitted)
                self._attempt.control(IDLE)
                self._attempt.run()
                del self._recorder.emitted[known:]
        else:
            self._idle = False
        return self._recorder.emitted[before:]

    def rescale(self, parallelism: int) -> list[Emitted]:
        """`restore` from a snapshot taken now, with another number of subtasks."""
        return self.restore(parallelism=parallelism)

    # -- looking --------------------------------------------------------------------------------

    @property
    def emitted(self) -> list[Emitted]:
        """All that came out so far, in order; a side output is in its place among the rest."""
        return list(self._recorder.emitted)

    def records(self) -> list[EmittedRecord]:
        """The records of the main output so far."""
        return [e for e in self._recorder.emitted if isinstance(e, EmittedRecord) and not e.side]

    def values(self) -> list[Any]:
        """The values of the main output so far."""
        return [record.value for record in self.records()]

    def side_output(self, tag: object) -> list[EmittedRecord]:
        """The records of a side output so far, by its `OutputTag` or the tag's id."""
        tag_id = getattr(tag, "tag_id", tag)
        return [
            e for e in self._recorder.emitted if isinstance(e, EmittedRecord) and e.side == tag_id
        ]

    @property
    def parallelism(self) -> int:
        """The number of subtasks of operators that do not say themselves."""
        return self._parallelism

    @property
    def processing_time(self) -> int:
        """Where the clock stands, in ms since the epoch."""
        return self.clock.now_ms()

    def state_entries(self) -> int:
        """Entries of keyed state in all operators and subtasks; timers are not among them."""
        return self._attempt.state_entries()

    def event_time_timers(self) -> int:
        """Event-time timers that wait, in all operators and subtasks."""
        return self._attempt.timers(event_time=True)

    def processing_time_timers(self) -> int:
        """Processing-time timers that wait, in all operators and subtasks."""
        return self._attempt.timers(event_time=False)

    def metric(self, name: str) -> int:
        """The sum of a counter over all operators and subtasks since they were last started.

        Raises `KeyError` naming the metrics there are, if it is none of them.
        """
        return self._attempt.metric(name)

    def readings(self, name: str) -> list[object]:
        """What a metric of any kind shows, for each operator and subtask that has it."""
        return self._attempt.readings(name)

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the operators; raises what went wrong doing so. May be called twice."""
        if not self._closed:
            self._closed = True
            errors = self._attempt.close()
            if errors and not self._failed:
                raise _unwrapped(errors[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside ---------------------------------------------------------------------------------

    def _plan(self) -> ExecutionPlan:
        return plan_of(
            self._build,
            self._recorder,
            parallelism=self._parallelism,
            max_parallelism=self._max_parallelism,
            chaining=self._chaining,
        )

    def _start(self, snapshot: OperatorSnapshot | None) -> HarnessAttempt:
        self._attempts += 1
        try:
            return HarnessAttempt(
                self._plan(), self._settings, self._recorder, self._attempts, snapshot
            )
        except OperatorFailure as failure:
            self._failed = True
            raise _unwrapped(failure) from failure.__cause__

    def _step(self, act: Callable[[HarnessAttempt], None]) -> list[Emitted]:
        self._check_usable()
        if self._restores and not self._attempt.ended:
            self.restore(keep_watermark=True)
        before = len(self._recorder.emitted)
        try:
            act(self._attempt)
            self._attempt.run()
        except OperatorFailure as failure:
            self._failed = True
            raise _unwrapped(failure) from None
        return self._recorder.emitted[before:]

    def _check_usable(self) -> None:
        if self._failed or self._closed:
            raise RuntimeError("the harness has failed before" if self._failed else "closed")

    def _batches(
        self, values: list[object], timestamps: list[int | None] | None
    ) -> list[StreamElement]:
        size = self._settings.batch_records
        batches: list[StreamElement] = []
        for start in range(0, len(values), size):
            times = None if timestamps is None else timestamps[start : start + size]
            if times is not None and all(time is None for time in times):
                times = None
            batches.append(RecordBatch(values[start : start + size], times))
        return batches


def _unwrapped(failure: Exception) -> BaseException:
    """The user's error with the coordinates of the failure as a note."""
    cause = failure.__cause__
    if isinstance(failure, OperatorFailure) and cause is not None:
        cause.add_note(f"in {failure}")
        return cause
    return failure
