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

from collections.abc import Hashable, Iterator
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
from operators.stream_operator import BATCH_RECORDS_MAX, Work
from operators.triggers import EventTimeTrigger, Window
from operators.window_contents import ABSENT, WindowContents
from operators.window_grid import TimeWindow
from operators.window_operator import (
    AnyWindowFunction,
    WindowOperator,
    check_timestamp,
    window_of,
)
from operators.windows import GridWindows

V = TypeVar("V")


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
                window = window_of(namespace)
                assert isinstance(window, TimeWindow)
                self._fired_before.add(window)

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
        open_from = self._grid.open_from(self._timers.current_watermark)
        try:
            self._fold(batch, timestamps, low, high)
        except BaseException:
            self._name_key(batch)
            raise
        self._records = self._selected = None
        if low >= open_from:
            return ()
        due = [index for index, timestamp in enumerate(timestamps) if timestamp < open_from]
        return self._process_records(batch, due)

    def _times(self, batch: RecordBatch) -> tuple[list[int], int, int]:
        """The timestamps with their least and greatest; raises `ValueError` for a bad one."""
        timestamps: Any = batch.timestamps
        if timestamps is not None:
            with suppress(TypeError):  # One of them is None.
                low, high = min(timestamps), max(timestamps)
                if low > -RECORD_TIMESTAMP_LIMIT and high < RECORD_TIMESTAMP_LIMIT:
                    return timestamps, low, high
        for index, value in enumerate(batch.values):
            self._index = index
            check_timestamp(value, None if timestamps is None else timestamps[index])
        raise AssertionError("timestamps that are neither sound nor unsound")

    def _fold(self, batch: RecordBatch, timestamps: list[int], low: int, high: int) -> None:
        """Adds the records to all their windows that are not yet due, one window at a time."""
        grid, watermark = self._grid, self._timers.current_watermark
        if grid.pane(low) == grid.pane(high):
            for window in reversed(grid.windows(low)):
                if window.end - 1 > watermark:
                    self._fold_into(window, batch, None)
            return
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
        for window, parts in windows.items():
            if sum(map(len, parts)) == size:
                self._fold_into(window, batch, None)
            else:
                self._fold_into(window, batch, sorted(chain.from_iterable(parts)))

    def _fold_into(
        self, window: TimeWindow, batch: RecordBatch, selected: list[int] | None
    ) -> None:
        keys, values = batch.keys, batch.values
        assert keys is not None
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
        return self._backend.representative(key)

    def _is_folded(self, window: Window) -> bool:
        return window.max_timestamp() > self._timers.current_watermark

    def _name_key(self, batch: RecordBatch) -> None:
        """Leaves the key of the record that user code failed at, for the error message."""
        index = self.position()
        if index is not None and batch.keys is not None:
            self.key = batch.keys[index]

    # -- firing -------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        """Fires what is due; see `WindowOperator`."""
        if self._fired_before:
            still_open = {w for w in self._fired_before if w.end - 1 > watermark.timestamp}
            self._fired_before = still_open
        return super().process_watermark(watermark)

    def _advance(self, watermark: Watermark) -> Iterator[StreamElement]:
        if self._function is not None:
            yield from super()._advance(watermark)
            return
        queue, outputs = self._timers.event_queue, self._outputs
        quiet = 0
        while (group := queue.poll_group(watermark.timestamp, self._room())) is not None:
            window = window_of(group.namespace)
            assert isinstance(window, TimeWindow)
            quiet += len(group.keys)
            if group.timestamp == window.end - 1:
                self._fire_keys(window, group.keys)
            elif group.timestamp == self._cleanup_time(window):
                self._forget_keys(window, group.keys)
            if self._room() <= 0 or quiet >= 2 * BATCH_RECORDS_MAX:
                yield from outputs.take(timed=True) or [RecordBatch([])]
                quiet = 0
        yield from outputs.take(timed=True)
        yield watermark

    def _fire_keys(self, window: TimeWindow, keys: list[Hashable]) -> None:
        """Puts out the contents of some keys of a window that ends."""
        table = self._tables.peek(window)
        if table is None:
            return
        removal = self._cleanup_time(window)
        last = removal == window.end - 1
        take = table.pop if last else table.get
        contents = list(map(take, keys, repeat(ABSENT)))
        if any(one is ABSENT for one in contents):
            # A trigger that this job had before may have purged a window and left its timer.
            pairs = [pair for pair in zip(keys, contents, strict=True) if pair[1] is not ABSENT]
            keys, contents = [key for key, _ in pairs], [one for _, one in pairs]
        if last and not table:
            self._tables.drop(window)
        results = self._contents.results(window, keys, contents)
        if not last:
            results = list(map(self._contents.detached, results, contents))
            if removal < MAX_TIMESTAMP:
                self._timers.event_queue.add_all(removal, keys, window)
        self._outputs.values.extend(results)
        self._outputs.timestamps.extend(repeat(window.end - 1, len(results)))

    def _forget_keys(self, window: TimeWindow, keys: list[Hashable]) -> None:
        """Removes the contents of some keys of a window that takes in nothing more."""
        table = self._tables.peek(window)
        if table is None:
            return
        for key in keys:
            table.pop(key, None)
        if not table:
            self._tables.drop(window)
