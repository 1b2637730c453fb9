"""Process functions on streams that are not keyed, and what the keyed ones share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from types import GeneratorType

from operators.advice import STATE_IN_OPEN, YIELDED
from operators.elements import MIN_TIMESTAMP, RecordBatch, StreamElement, Watermark
from operators.functions import callable_of
from operators.outputs import Outputs, detached, outputs_in
from operators.process_functions import ProcessFunction, TimerService
from operators.stream_operator import BATCH_RECORDS_MAX, OperatorContext, Work
from operators.user_function import UserFunctionOperator
from statebackends.clock import Clock


class CallContext:
    """What a call is about; one object serves all calls of an operator."""

    __slots__ = ("current",)

    _advice = YIELDED | STATE_IN_OPEN

    def __init__(self) -> None:
        self.current: int | None = None
        """Timestamp of the record or timer at hand."""


class ProcessContext(CallContext, ProcessFunction.Context):
    """The context of a process function."""

    __slots__ = ("_timer_service",)

    def __init__(self, timer_service: TimerService) -> None:
        super().__init__()
        self._timer_service = timer_service

    def timer_service(self) -> TimerService:
        """See `ProcessFunction.Context`."""
        return self._timer_service

    def timestamp(self) -> int | None:
        """See `ProcessFunction.Context`."""
        return self.current


class UnkeyedTimerService(TimerService):
    """Clocks without timers: a timer belongs to a key."""

    __slots__ = ("_clock", "watermark")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.watermark = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        """Processing time in ms since the epoch."""
        return self._clock.now_ms()

    def current_watermark(self) -> int:
        """The watermark."""
        return self.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Raises `TypeError`."""
        raise _no_timers()

    def register_event_time_timer(self, timestamp: int) -> None:
        """Raises `TypeError`."""
        raise _no_timers()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Raises `TypeError`."""
        raise _no_timers()

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Raises `TypeError`."""
        raise _no_timers()


def _no_timers() -> TypeError:
    return TypeError("timers need a keyed stream: call key_by before process")


class OutputOperator(UserFunctionOperator):
    """Collects what calls of user code give out and hands it on in order.

    A call that gives out without end is handed on in full batches.
    """

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self._outputs = Outputs()
        self._touched: list[object] = []
        """Mutable objects that state has taken or handed out in the call at hand."""

    def _hand_on(self, *, timed: bool, inside: bool = False) -> Iterator[StreamElement]:
        """Puts out what was collected; `inside` a call, nothing else may come in between."""
        elements = self._outputs.take(timed=timed)
        if not elements:
            return
        # Between the batches of several outputs nothing may come in either: it would overtake.
        self.in_record = True
        yield from elements[:-1]
        self.in_record = inside
        yield elements[-1]
        self.in_record = False


class ProcessOperator(OutputOperator):
    """Runs a `ProcessFunction`, or a callable of value and context."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self._process_element = callable_of(function, "process_element")

    def setup(self, context: OperatorContext) -> None:
        """Makes the one context of all calls."""
        super().setup(context)
        self._timer_service = UnkeyedTimerService(context.clock)
        self._call_context = ProcessContext(self._timer_service)

    def process_batch(self, batch: RecordBatch) -> Work:
        """The outputs of a call per record, at the record's timestamp."""
        context = self._call_context
        process_element = self._process_element
        values_out = self._outputs.values
        timestamps_out = self._outputs.timestamps
        copies = self.copies_outputs
        self._size = len(batch.values)
        records = self._records = iter(batch.values)
        timed = batch.timestamps is not None
        for value, timestamp in zip(records, batch.timestamps or repeat(None), strict=False):
            context.current = timestamp
            result = process_element(value, context)
            if type(result) is not GeneratorType:
                result = outputs_in(result, "process_element")
            for output in result:
                values_out.append(detached(output) if copies else output)
                timestamps_out.append(timestamp)
                if len(values_out) >= BATCH_RECORDS_MAX:
                    yield from self._hand_on(timed=timed, inside=True)
        yield from self._hand_on(timed=timed)

    def process_watermark(self, watermark: Watermark) -> Work:
        """Remembers the watermark for the context."""
        self._timer_service.watermark = watermark.timestamp
        return (watermark,)
