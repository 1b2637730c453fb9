"""The window operator over batches: event time, windows at regular distances, default trigger.

Records whose windows are not yet due cannot fire, so that a batch is folded window by window,
straight into the tables of the state. What lies in a window that is due leaves for the way
record by record: it fires at once, or is late. As the contents of different windows do not
touch, both ways together give what record by record alone would give; the order of arrival
within a key and window is kept.

Windows that end are fired in chunks of keys. Without allowed lateness their state goes with
them, else a timer for the removal is registered as they fire.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from operator import length_hint
from typing import Any, TypeVar

from operators.elements import (
    MAX_TIMESTAMP,
    RECORD_TIMESTAMP_LIMIT,
    RecordBatch,
    StreamElement,
    Watermark,
)
from operators.output_tag import OutputTag
from operators.stream_operator import Work
from operators.triggers import EventTimeTrigger, Window
from operators.window_contents import ABSENT, WindowContents
from operators.window_functions import ProcessWindowFunction
from operators.window_grid import TimeWindow
from operators.window_operator import (
    AnyWindowFunction,
    WindowOperator,
    check_timestamp,
    keys_of,
    window_of,
)
from operators.windows import GridWindows
from statebackends.errors import StateError

V = TypeVar("V")
_Step = tuple[TimeWindow, list[int] | None]
"""A window with the indices of its records in the batch; None stands for all of them."""

_Plan = list[_Step]

COST_A_PAUSE = 8_192
"""Records that are folded, each into each of its windows, between two offers to pause."""

WINDOW_COST = 16
"""What it takes to fold into or to fire one more window, in records or keys."""

KEYS_A_PAUSE = 2_048
"""Keys of windows that are fired or removed between two offers to pause."""

CALLS_A_PAUSE = 512
"""The same where each key is a call of a window function."""


class FoldingWindowOperator(WindowOperator[V]):
    """See the module's text; the arguments are those of `WindowOperator`."""

    def __init__(
        self,
        assigner: GridWindows,
        contents: WindowContents[V],
        function: AnyWindowFunction | None = None,
        lateness_ms: int = 0,
        late_tag: OutputTag[Any] | None = None,
    ) -> None:
        super().__init__(assigner, EventTimeTrigger(), contents, function, lateness_ms, late_tag)
        self._grid = assigner.grid
        self._contents.overlapping = self._grid.slide < self._grid.size
        self._clears = (
            isinstance(function, ProcessWindowFunction)
            and type(function).clear is not ProcessWindowFunction.clear
        )
        self._records: Iterator[object] | None = None
        self._selected: list[int] | None = None
        self._size = 0
        self._fired_before: set[TimeWindow] = set()

    def initialize_state(self) -> None:
        """As `WindowOperator`; notes the windows that may have fired before the restart.

        The watermark begins anew after a restart. A window that had fired and waited for late
        elements counts as not yet due then: its keys are in the state, but have no timer.
        """
        super().initialize_state()
        if self.context.restored_checkpoint_id is not None and self._lateness_ms:
            for namespace in self._tables.namespaces():
                self._fired_before.add(_time_window(namespace))

    def position(self) -> int | None:
        """Index of the record that user code was called with last."""
        if self._records is None:
            return super().position()
        index = self._size - length_hint(self._records) - 1
        if index < 0:
            return None
        return index if self._selected is None else self._selected[index]

    # -- elements -----------------------------------------------------------------------------

    def process_batch(self, batch: RecordBatch) -> Work:
        """Folds what lies in open windows; the rest goes record by record."""
        timestamps, low, high = self._times(batch)
        plan = self._plan(timestamps, low, high)
        due: list[int] = []
        open_from = self._grid.open_from(self._timers.current_watermark)
        if low < open_from:
            due = [index for index, timestamp in enumerate(timestamps) if timestamp < open_from]
        if len(plan) > 1 and sum(_cost(step, batch) for step in plan) > COST_A_PAUSE:
            return self._process_in_turns(batch, plan, due)
        self._fold(batch, plan)
        return self._process_records(batch, due) if due else ()

    def _process_in_turns(
        self, batch: RecordBatch, plan: _Plan, due: list[int]
    ) -> Iterator[StreamElement]:
        """The same with offers to pause, for records that lie in many windows."""
        cost = 0
        for step in plan:
            self._fold(batch, [step])
            cost += _cost(step, batch)
            if cost > COST_A_PAUSE:
                yield RecordBatch([])
                cost = 0
        yield from self._process_records(batch, due)

    def _times(self, batch: RecordBatch) -> tuple[list[int], int, int]:
        """The timestamps with their least and greatest; raises `ValueError` for a bad one."""
        timestamps: Any = batch.timestamps
        if timestamps is not None:
            with suppress(TypeError):  # One of them is None.
                low, high = min(timestamps), max(timestamps)
                if low > -RECORD_TIMESTAMP_LIMIT and high < RECORD_TIMESTAMP_LIMIT:
                    return timestamps, low, high
        for index, (key, value) in enumerate(zip(keys_of(batch), batch.values, strict=True)):
            self._index, self.key = index, key
            check_timestamp(value, None if timestamps is None else timestamps[index])
        raise AssertionError("timestamps that are neither sound nor unsound")

    def _plan(self, timestamps: list[int], low: int, high: int) -> _Plan:
        """The windows that are not yet due, and which records lie in each, in order.

        Records are sorted by pane first, a stretch of time in which all have the same windows: a
        batch holds few panes and many records.
        """
        grid, watermark = self._grid, self._timers.current_watermark
        if grid.pane(low) == grid.pane(high):
            return [(one, None) for one in grid.windows(low) if one.end - 1 > watermark]
        panes: dict[int, list[int]] = {}
        for index, pane in enumerate(grid.panes(timestamps)):
            try:
                panes[pane].append(index)
            except KeyError:
                panes[pane] = [index]
        windows: dict[TimeWindow, list[list[int]]] = {}
        for pane, indices in panes.items():
            for window in grid.windows(pane):
                if window.end - 1 > watermark:
                    windows.setdefault(window, []).append(indices)
        size = len(timestamps)
        return [
            (
                window,
                None if sum(map(len, parts)) == size else sorted(chain.from_iterable(parts)),
            )
            for window, parts in windows.items()
        ]

    def _fold(self, batch: RecordBatch, plan: _Plan) -> None:
        """Adds the records to the contents, one window at a time."""
        self.key = None
        try:
            for window, selected in plan:
                self._fold_into(window, batch, selected)
        except BaseException:
            self._locate_failure(batch)
            raise
        self._records = self._selected = None

    def _fold_into(
        self, window: TimeWindow, batch: RecordBatch, selected: list[int] | None
    ) -> None:
        """Adds records to one window; keys that are new in it get a timer for its end."""
        keys, values = keys_of(batch), batch.values
        if selected is not None:
            keys = [keys[index] for index in selected]
            values = [values[index] for index in selected]
        self._selected = selected
        self._size = len(values)
        self._records = records = iter(values)
        new = self._contents.fold(self._tables.table(window), keys, records, self._admit)
        if window in self._fired_before:
            new = list(map(self._backend.representative, keys))
        if new:
            self._timers.event_queue.add_all(window.end - 1, new, window)

    def _admit(self, key: Hashable) -> Hashable:
        """The representative of a key that is new in a window; refuses one without stable form."""
        self.key = key
        return self._backend.representative(key)

    def _windows_to_add_to(
        self, value: object, timestamp: int, given: int | None
    ) -> Collection[Window]:
        """Those that are due; to the others the batch was added as a whole."""
        windows = super()._windows_to_add_to(value, timestamp, given)
        watermark = self._timers.current_watermark
        return [window for window in windows if window.max_timestamp() <= watermark]

    def _locate_failure(self, batch: RecordBatch) -> None:
        """Leaves key and position of the record at which folding failed.

        Raises `UnstableKeyError` where the reason is a key that has no hash.
        """
        keys = keys_of(batch)
        index = self.position()
        if index is None:
            # No user code was called: a key was refused.
            refused = [i for i, key in enumerate(keys) if not _has_hash(key)]
            refused += [i for i, key in enumerate(keys) if key is self.key]
            if not refused:
                return
            index = refused[0]
        self._records, self._index, self.key = None, index, keys[index]
        if not _has_hash(self.key):
            self._backend.representative(self.key)

    # -- firing -------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        """Fires what is due; see `WindowOperator`."""
        if self._fired_before:
            still_open = {w for w in self._fired_before if w.end - 1 > watermark.timestamp}
            self._fired_before = still_open
        return super().process_watermark(watermark)

    def _advance(self, watermark: Watermark) -> Iterator[StreamElement]:
        """Fires and removes what is due, a group of keys of one window at a time."""
        queue, outputs = self._timers.event_queue, self._outputs
        quiet = 0
        keys_a_pause = KEYS_A_PAUSE if self._function is None else CALLS_A_PAUSE
        while True:
            keys_max = min(self._room(), keys_a_pause - quiet)
            group = queue.poll_group(watermark.timestamp, keys_max)
            if group is None:
                break
            window = _time_window(group.namespace)
            ends = group.timestamp == window.end - 1
            removed = group.timestamp == self._cleanup_time(window)
            if ends:
                yield from self._fire_keys(window, group.keys, removed)
            elif removed:
                self._take(window, group.keys, removed)
            if removed and self._clears:
                self._clear_keys(window, group.keys)
            quiet += WINDOW_COST + len(group.keys)
            if self._room() <= 0 or quiet >= keys_a_pause:
                yield from outputs.take(timed=True) or [RecordBatch([])]
                quiet = 0
        yield from outputs.take(timed=True)
        yield watermark

    def _fire_keys(
        self, window: TimeWindow, keys: list[Hashable], removed: bool
    ) -> Iterator[StreamElement]:
        """Puts out the contents of some keys of a window that ends."""
        keys, contents = self._take(window, keys, removed)
        left = iter(contents)
        try:
            results = self._contents.results(window, keys, left)
        except BaseException:
            self.key = keys[len(keys) - length_hint(left) - 1]
            raise
        if not removed:
            results = list(map(self._contents.detached, results, contents))
            removal = self._cleanup_time(window)
            if removal < MAX_TIMESTAMP:
                self._timers.event_queue.add_all(removal, keys, window)
        yield from self._put_out(window, keys, results)

    def _take(
        self, window: TimeWindow, keys: list[Hashable], removed: bool
    ) -> tuple[list[Hashable], list[V]]:
        """The contents of some keys, `removed` from the state or not, and whose they are."""
        table = self._tables.peek(window)
        if table is None:
            return [], []
        contents = list(map(table.pop if removed else table.get, keys, repeat(ABSENT)))
        if removed and not table:
            self._tables.drop(window)
        if any(one is ABSENT for one in contents):
            # A trigger that this job had before may have purged a window and left its timer.
            kept = [index for index, one in enumerate(contents) if one is not ABSENT]
            return [keys[index] for index in kept], [contents[index] for index in kept]
        return keys, contents

    def _clear_keys(self, window: TimeWindow, keys: list[Hashable]) -> None:
        """Has the user's function clear its state of some keys of a window that is removed."""
        assert isinstance(self._function, ProcessWindowFunction)
        self._scope.enter(window)
        for key in keys:
            self.key = key
            self._backend.set_current_key(key)
            self._function.clear(self._process_context)


def _cost(step: _Step, batch: RecordBatch) -> int:
    selected = step[1]
    return WINDOW_COST + (len(batch) if selected is None else len(selected))


def _time_window(namespace: Hashable) -> TimeWindow:
    window = window_of(namespace)
    if not isinstance(window, TimeWindow):
        raise StateError(
            f"the restored state holds the window {window!r}, but the job has windows of time "
            "now: keep the window assigner, or give the operator a new uid"
        )
    return window


def _has_hash(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
