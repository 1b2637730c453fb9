"""Keyed process functions: state of the current key, timers, outputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import repeat
from types import GeneratorType

from operators.elements import RecordBatch, StreamElement, Watermark
from operators.functions import callable_of
from operators.outputs import detached, outputs_in
from operators.process import CallContext, OutputOperator
from operators.process_functions import KeyedProcessFunction, TimeDomain, TimerService
from operators.stream_operator import BATCH_RECORDS_MAX, Work
from operators.timers import InternalTimerService, KeyedTimerService
from statebackends.backend import KeyedStateBackend
from statebackends.timer_queue import Timer

USER_TIMERS = "user-timers"
"""The name under which timers of user functions are kept."""

TIMERS_PER_PAUSE = 16
"""After so many timers the task may look at its time budget, outputs or not."""

TIMERS_PER_BATCH = 256
"""After so many timers what they put out is handed on, so that other calls may come in."""


class KeyedContext(CallContext, KeyedProcessFunction.OnTimerContext):
    """The context of a keyed process function, for records and timers."""

    __slots__ = ("_backend", "_timer_service", "domain")

    def __init__(self, backend: KeyedStateBackend, timer_service: TimerService) -> None:
        super().__init__()
        self._backend = backend
        self._timer_service = timer_service
        self.domain: TimeDomain | None = None
        """Of the timer at hand, None while a record is."""

    def get_current_key(self) -> Hashable:
        """See `KeyedProcessFunction.Context`."""
        return self._backend.current_key

    def timer_service(self) -> TimerService:
        """See `KeyedProcessFunction.Context`."""
        return self._timer_service

    def timestamp(self) -> int | None:
        """See `KeyedProcessFunction.Context`."""
        return self.current

    def time_domain(self) -> TimeDomain:
        """See `KeyedProcessFunction.OnTimerContext`; `RuntimeError` outside `on_timer`."""
        if self.domain is None:
            raise RuntimeError("time_domain() is known in on_timer only")
        return self.domain


class KeyedProcessOperator(OutputOperator):
    """Runs a `KeyedProcessFunction`, or a callable of value and context."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self._process_element = callable_of(function, "process_element")
        self._on_timer = getattr(function, "on_timer", None)

    def initialize_state(self) -> None:
        """Fetches the timers."""
        self._backend = self.context.keyed_state
        self._touched = self._backend.touched
        self._timers = InternalTimerService(USER_TIMERS, self.context, self._fire_processing)
        timer_service = KeyedTimerService(self._timers, self.context)
        self._call_context = KeyedContext(self._backend, timer_service)

    def open(self) -> None:
        """Opens the user function, then lets restored timers fire."""
        super().open()
        self._timers.open()

    def close(self) -> None:
        """Gives up the wake-up and closes the user function."""
        if hasattr(self, "_timers"):
            self._timers.close()
        super().close()

    def process_batch(self, batch: RecordBatch) -> Work:
        """The outputs of a call per record."""
        if batch.keys is None:
            raise ValueError("records without keys came to a keyed operator")
        try:
            yield from self._process(batch, batch.keys)
        except BaseException as error:
            self.key = self._backend.current_key
            if isinstance(error, TypeError):
                self._refuse_unhashable(batch.keys)
            raise

    def _process(self, batch: RecordBatch, keys: list[Hashable]) -> Iterator[StreamElement]:
        process_element = self._process_element
        context = self._call_context
        backend = self._backend
        find_row = backend.row_memo.get
        generator = GeneratorType
        touched = self._touched
        copying = self.copies_outputs
        append = self._outputs.values.append
        append_timestamp = self._outputs.timestamps.append
        room = BATCH_RECORDS_MAX
        self._size = len(batch.values)
        records = self._records = iter(batch.values)
        timed = batch.timestamps is not None
        timestamps = batch.timestamps or repeat(None)
        context.domain = None
        for key, value, timestamp in zip(keys, records, timestamps, strict=False):
            # What `set_current_key` does, without the call, for a key that was seen lately.
            row = find_row(key)
            if row is None:
                backend.set_current_key(key)
            else:
                backend.current_key = key
                backend.row = row
            context.current = timestamp
            result = process_element(value, context)
            if type(result) is not generator:
                if result is None:
                    if touched:
                        touched.clear()
                    continue
                if type(result) is not list:
                    result = outputs_in(result, "process_element")
            room_before = room
            copies = 0
            for output in result:
                if touched or copying:
                    output = detached(output)
                    copies += 1
                append(output)
                if timed:
                    append_timestamp(timestamp)
                room -= 1
                if not room:
                    yield from self._hand_on(timed=timed, inside=True)
                    room = BATCH_RECORDS_MAX
            if touched:
                self._end_call(room_before - room, copies)
        yield from self._hand_on(timed=timed)

    def _end_call(self, outputs: int, copies: int) -> None:
        """After a call with mutable state: what it put out before may have been stored since."""
        if outputs > copies:
            start = len(self._outputs.values) - outputs
            self._outputs.detach(start, start + outputs - copies)
        self._touched.clear()

    def _refuse_unhashable(self, keys: list[Hashable]) -> None:
        """Raises `UnstableKeyError` if it was the key of the record that raised `TypeError`."""
        position = self.position()
        if position is not None:
            try:
                hash(keys[position])
            except TypeError:
                self._backend.set_current_key(keys[position])

    def process_watermark(self, watermark: Watermark) -> Work:
        """Fires the event-time timers that became due, then puts the watermark out."""
        self._timers.advance_watermark(watermark.timestamp)
        yield from self._fire(TimeDomain.EVENT_TIME)
        yield watermark

    def _fire_processing(self) -> Work:
        return self._fire(TimeDomain.PROCESSING_TIME)

    def _fire(self, domain: TimeDomain) -> Iterator[StreamElement]:
        timed = domain is TimeDomain.EVENT_TIME
        poll = self._timers.poll_event if timed else self._timers.poll_processing
        try:
            yield from self._call_timers(poll, domain, timed=timed)
        except BaseException:
            self.key = self._backend.current_key
            self.timer = self._call_context.current
            raise

    def _call_timers(
        self, poll: Callable[[], Timer | None], domain: TimeDomain, *, timed: bool
    ) -> Iterator[StreamElement]:
        on_timer = self._on_timer
        context = self._call_context
        set_current_key = self._backend.set_current_key
        touched = self._touched
        copying = self.copies_outputs
        values_out = self._outputs.values
        timestamps_out = self._outputs.timestamps
        fired = 0
        self._records = None
        while (timer := poll()) is not None:
            timestamp = timer.timestamp
            set_current_key(timer.key)
            context.current = timestamp
            context.domain = domain
            result = None if on_timer is None else on_timer(timestamp, context)
            if type(result) is not GeneratorType:
                result = outputs_in(result, "on_timer")
            held = len(values_out)
            copies = 0
            for output in result:
                if touched or copying:
                    output = detached(output)
                    copies += 1
                values_out.append(output)
                timestamps_out.append(timestamp if timed else None)
                if len(values_out) >= BATCH_RECORDS_MAX:
                    yield from self._hand_on(timed=timed, inside=True)
            if touched:
                self._end_call(len(values_out) - held, copies)
            fired += 1
            if fired % TIMERS_PER_PAUSE == 0:
                if fired % TIMERS_PER_BATCH == 0:
                    yield from self._hand_on(timed=timed)
                # A call in between would mix its outputs with those that are held.
                self.in_record = len(values_out) > 0
                yield RecordBatch([])
                self.in_record = False
                self._records = None
        yield from self._hand_on(timed=timed)
