"""The window operator, record by record: any assigner, trigger and window function.

Contents, trigger state and timers are kept per key and window in the keyed backend. An element
is late for a window once the watermark has reached the window's last timestamp plus the allowed
lateness; late for all its windows, it goes to the side output and is counted. Flink:
`WindowOperator`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from itertools import repeat
from typing import Any, Generic, TypeVar

from operators.elements import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    RECORD_TIMESTAMP_LIMIT,
    RecordBatch,
    StreamElement,
    Watermark,
)
from operators.errors import WrongResultError, WrongTimestampError
from operators.functions import Function
from operators.output_tag import OutputTag
from operators.outputs import Outputs, detached, outputs_in
from operators.stream_operator import BATCH_RECORDS_MAX, StreamOperator, Work
from operators.timers import InternalTimerService
from operators.triggers import Trigger, TriggerResult, Window
from operators.window_contents import ABSENT, WindowContents
from operators.window_functions import ProcessWindowFunction, WindowFunction
from operators.window_grid import TimeWindow
from operators.window_scope import (
    ScopedAssignerContext,
    ScopedProcessContext,
    ScopedTriggerContext,
    WindowScope,
)
from operators.windows import WindowAssigner
from statebackends.backend import NamespaceTable
from statebackends.timer_queue import Timer

V = TypeVar("V")
AnyWindowFunction = WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any]

TIMERS = "window-timers"
LATE_COUNTER = "num_late_records_dropped"
RECORDS_A_PAUSE = 256
"""Records between two offers to pause; less than a millisecond unless user code takes long."""

TIMERS_A_PAUSE = 512
"""Timers that fire between two offers to pause; about a millisecond."""


class WindowOperator(StreamOperator, Generic[V]):
    """See the module's text.

    Args:
        assigner: says which windows an element belongs to.
        trigger: says when they fire.
        contents: what is kept of the elements.
        function: turns what fires into outputs; None puts it out as it is.
        lateness_ms: how long after their end windows still take in elements (event time only).
        late_tag: where late elements go; they are counted in any case.
    """

    def __init__(
        self,
        assigner: WindowAssigner[Any, Window],
        trigger: Trigger[Any, Any],
        contents: WindowContents[V],
        function: AnyWindowFunction | None = None,
        lateness_ms: int = 0,
        late_tag: OutputTag[Any] | None = None,
    ) -> None:
        self._assigner = assigner
        self._trigger = trigger
        self._contents = contents
        self._function = function
        self._lateness_ms = lateness_ms
        self._late_tag = late_tag
        self.drops_late = late_tag is None
        """Whether records that are late for all their windows are lost."""
        self._event_time = assigner.is_event_time()
        self._outputs = Outputs()
        self._index: int | None = None
        self._opened: list[Function] = []
        self._representative: Hashable = None
        """Of the key at hand: what state and timers are kept under."""

    # -- life ---------------------------------------------------------------------------------

    def initialize_state(self) -> None:
        """Fetches contents, timers and the counter of late records."""
        context = self.context
        self._backend = context.keyed_state
        self._tables: NamespaceTable[V] = self._backend.namespace_table(self._contents.descriptor())
        self._timers = InternalTimerService(TIMERS, context, self._on_processing_time)
        self._late_count = context.metrics.counter(LATE_COUNTER)
        self._scope = WindowScope(context, self._timers)
        self._trigger_context = ScopedTriggerContext(self._scope)
        self._process_context = ScopedProcessContext(self._scope)
        self._assigner_context = ScopedAssignerContext(self._scope)

    def open(self) -> None:
        """Opens the user's functions and wakes up for timers that were restored."""
        for function in (self._contents.function, self._function):
            if isinstance(function, Function):
                self._opened.append(function)
                function.open(self._scope.runtime_context)
        self._timers.open()

    def close(self) -> None:
        """Closes the user's functions."""
        if hasattr(self, "_timers"):
            self._timers.close()
        while self._opened:
            self._opened.pop().close()

    def position(self) -> int | None:
        """Index of the record that is being processed; None while timers fire."""
        return self._index

    # -- elements -----------------------------------------------------------------------------

    def process_batch(self, batch: RecordBatch) -> Work:
        """Adds each record to its windows; fires those whose trigger says so."""
        return self._process_records(batch, range(len(batch)))

    def _process_records(
        self, batch: RecordBatch, indices: Iterable[int]
    ) -> Iterator[StreamElement]:
        values, timestamps, keys = batch.values, batch.timestamps, keys_of(batch)
        set_current_key, representative = (
            self._backend.set_current_key,
            self._backend.representative,
        )
        ask, trigger_context = self._trigger.on_element, self._trigger_context
        event_time = self._event_time
        for processed, index in enumerate(indices, 1):
            self._index = index
            self.key = key = keys[index]
            set_current_key(key)
            self._representative = representative(key)
            value = values[index]
            given = timestamps[index] if timestamps is not None else None
            if event_time:
                check_timestamp(value, given)
            timestamp = MIN_TIMESTAMP if given is None else given
            for window in self._windows_to_add_to(value, timestamp, given):
                self._add(value, window)
                self._scope.enter(window)
                result = ask(value, timestamp, window, trigger_context)
                if result is not TriggerResult.CONTINUE:
                    yield from self._obey(result, window)
                self._register_cleanup(window)
            if self._room() <= 0:
                yield from self._outputs.take(timed=True)
            elif processed % RECORDS_A_PAUSE == 0:
                yield from self._outputs.take(timed=True) or [RecordBatch([])]
        self._index = None
        yield from self._outputs.take(timed=True)

    def _windows_to_add_to(
        self, value: object, timestamp: int, given: int | None
    ) -> Collection[Window]:
        """The windows of a record that it is not late for; drops one that is late for all."""
        windows = self._assigner.assign_windows(value, timestamp, self._assigner_context)
        if not self._event_time:
            return windows
        watermark = self._timers.current_watermark
        in_time = [window for window in windows if self._cleanup_time(window) > watermark]
        # A record between sliding windows with gaps has no window: its own time decides.
        if not in_time and min(timestamp + self._lateness_ms, MAX_TIMESTAMP) <= watermark:
            self._late_count.inc()
            if self._late_tag is not None:
                self._outputs.values.append((self._late_tag, value))
                self._outputs.timestamps.append(given)
        return in_time

    def _add(self, value: object, window: Window) -> None:
        key, table = self._representative, self._tables.table(window)
        contents = table.get(key, ABSENT)
        if contents is ABSENT:
            table[key] = self._contents.first(value)
        else:
            table[key] = self._contents.add(value, contents)

    # -- timers -------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        """Fires what is due, in the order of time, then lets the watermark follow."""
        self._timers.advance_watermark(watermark.timestamp)
        earliest = self._timers.event_queue.earliest()
        if earliest is None or earliest > watermark.timestamp:
            return (watermark,)
        return self._advance(watermark)

    def _advance(self, watermark: Watermark) -> Iterator[StreamElement]:
        yield from self._fire_all(self._timers.poll_event, event_time=True)
        yield watermark

    def _on_processing_time(self) -> Work:
        return self._fire_all(self._timers.poll_processing, event_time=False)

    def _fire_all(
        self, poll: Callable[[], Timer | None], event_time: bool
    ) -> Iterator[StreamElement]:
        fired = 0
        while (timer := poll()) is not None:
            yield from self._fire(timer, event_time)
            fired += 1
            if self._room() <= 0:
                yield from self._outputs.take(timed=True)
            elif fired % TIMERS_A_PAUSE == 0:
                yield from self._outputs.take(timed=True) or [RecordBatch([])]
        yield from self._outputs.take(timed=True)

    def _fire(self, timer: Timer, event_time: bool) -> Iterator[StreamElement]:
        """Asks the trigger about a timer that is due; removes the window at its very end."""
        time, window = timer.timestamp, window_of(timer.namespace)
        self.key = self._representative = timer.key
        self._backend.set_current_key(self.key)
        self._scope.enter(window)
        last = event_time is self._event_time and time == self._cleanup_time(window)
        ask = self._trigger.on_event_time if event_time else self._trigger.on_processing_time
        result = ask(time, window, self._trigger_context)
        if result is not TriggerResult.CONTINUE:
            yield from self._obey(result, window, last)
        if last:
            self._clear(window)
        elif self._contents_of(window) is not ABSENT:
            self._register_cleanup(window)

    def _cleanup_time(self, window: Window) -> int:
        """When the window is removed, by the kind of time that the assigner follows."""
        end = window.max_timestamp()
        return min(end + self._lateness_ms, MAX_TIMESTAMP) if self._event_time else end

    def _register_cleanup(self, window: Window) -> None:
        time = self._cleanup_time(window)
        if time == MAX_TIMESTAMP:
            return  # The window stays for good.
        if self._event_time:
            self._timers.event_queue.add(time, self._representative, window)
        else:
            self._timers.register_processing_time_timer(window, time)

    # -- firing -------------------------------------------------------------------------------

    def _obey(
        self, result: TriggerResult, window: Window, last: bool = False
    ) -> Iterator[StreamElement]:
        """Fires and purges as the trigger said; `last`: the window is removed right after."""
        if type(result) is not TriggerResult:
            raise WrongResultError(f"a trigger must return a TriggerResult, not {result!r:.80}")
        contents = self._contents_of(window)
        if contents is ABSENT:
            return
        if result.is_purge():
            self._remove(window)
        if result.is_fire():
            key = self._representative
            fired = self._contents.results(window, [key], [contents])
            if not last and not result.is_purge():
                fired = [self._contents.detached(fired[0], contents)]
            yield from self._put_out(window, [key], fired)
            if self._room() <= 0:
                yield from self._hand_on_inside()

    def _put_out(
        self, window: Window, keys: list[Hashable], fired: list[object]
    ) -> Iterator[StreamElement]:
        """Gives what fired to the window function, key by key, or puts it out as it is.

        There must be room for one output, without a function for as many as there are keys.
        """
        outputs, timestamp, function = self._outputs, window.max_timestamp(), self._function
        if function is None:
            outputs.values.extend(fired)
            outputs.timestamps.extend(repeat(timestamp, len(fired)))
            return
        self._scope.enter(window)
        elements, touched = self._contents.elements, self._backend.touched
        copies = self.copies_outputs
        about: Any = window
        if isinstance(function, ProcessWindowFunction):
            call: Callable[..., Any] = function.process
            method, about = "process", self._process_context
        else:
            call, method = function.apply, "apply"
        for key, result in zip(keys, fired, strict=True):
            self.key = key
            self._backend.set_current_key(key)
            returned = call(key, about, elements(result))
            if returned.__class__ is not list:
                returned = outputs_in(returned, method)
            for output in returned:
                outputs.values.append(detached(output) if touched or copies else output)
                outputs.timestamps.append(timestamp)
                if self._room() <= 0:
                    yield from self._hand_on_inside()

    def _hand_on_inside(self) -> Iterator[StreamElement]:
        """Hands on a full batch while a record or timer is not yet done with."""
        self.in_record = True
        yield from self._outputs.take(timed=True)
        self.in_record = False

    def _room(self) -> int:
        return BATCH_RECORDS_MAX - len(self._outputs.values)

    def _contents_of(self, window: Window) -> Any:
        table = self._tables.peek(window)
        return ABSENT if table is None else table.get(self._representative, ABSENT)

    def _remove(self, window: Window) -> None:
        """Removes the contents of the key at hand."""
        table = self._tables.peek(window)
        if (
            table is not None
            and table.pop(self._representative, ABSENT) is not ABSENT
            and not table
        ):
            self._tables.drop(window)

    def _clear(self, window: Window) -> None:
        """Removes all that is kept of the key at hand in the window."""
        self._remove(window)
        self._scope.enter(window)
        self._trigger.clear(window, self._trigger_context)
        if isinstance(self._function, ProcessWindowFunction):
            self._function.clear(self._process_context)


def check_timestamp(value: object, timestamp: int | None) -> None:
    """Raises `ValueError` naming the record unless its timestamp can be placed in a window."""
    if timestamp is None or timestamp == MIN_TIMESTAMP:
        raise WrongTimestampError(
            f"the record {value!r:.200} has no timestamp: assign one with "
            "WatermarkStrategy.with_timestamp_assigner, or use processing-time windows"
        )
    if not -RECORD_TIMESTAMP_LIMIT < timestamp < RECORD_TIMESTAMP_LIMIT:
        raise WrongTimestampError(
            f"the timestamp {timestamp} of the record {value!r:.200} is beyond "
            f"+-{RECORD_TIMESTAMP_LIMIT} ms; is it in another unit?"
        )


def window_of(namespace: Hashable) -> Window:
    """The window that a timer's namespace stands for; restored ones may be plain tuples."""
    if type(namespace) is tuple:
        return TimeWindow(*namespace)
    return namespace  # type: ignore[return-value]  # all others are stored as they are


def keys_of(batch: RecordBatch) -> list[Hashable]:
    """The keys of a batch; raises `ValueError` if it has none."""
    if batch.keys is None:
        raise ValueError("windows need a keyed stream: the batch has no keys")
    return batch.keys
