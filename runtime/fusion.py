"""Fuses neighbouring maps and filters of a chain into one generated loop.

No list is built between two operators, and simple functions are not even called
(`stage_loops.py`). The operators stay what they are for everything else: opening and closing,
watermarks, metrics and failures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from operator import length_hint
from types import CodeType, CoroutineType, FrameType

from operators.elements import RecordBatch
from operators.outputs import refuse_coroutines
from operators.stateless import FilterOperator, MapOperator
from runtime.chain import ChainNode, Unfinished
from runtime.errors import USER_FAILURES, OperatorFailure
from runtime.stage_loops import StageLoops, calling, in_place


def fuse(nodes: list[ChainNode]) -> None:
    """Gives each run of maps and filters in a chain its loop; called once they are open."""
    fused: set[int] = set()
    for node in nodes:
        if id(node) in fused or node.copies_input:
            continue
        run = _run_from(node)
        if not run or (len(run) == 1 and type(node.operator) is FilterOperator):
            continue
        functions = [one.operator.call for one in run]  # type: ignore[attr-defined]  # maps and filters
        filters = [type(one.operator) is FilterOperator for one in run]
        replaced = None if _is_traced() else in_place(functions, filters)
        if len(run) > 1 or replaced is not None:
            fused.update(map(id, run))
            loops = calling(functions, filters) if replaced is None else replaced
            first = calling(list(map(_checked, functions, filters)), filters)
            node.fused = FusedStages(run, filters, first, loops)


def _is_traced() -> bool:
    """Whether a debugger (or a measurement of coverage) is to see each call."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None:
        return True
    return sys.gettrace() is not None


def _run_from(node: ChainNode) -> list[ChainNode]:
    """The operators from `node` on that share a loop: maps, and at most one filter.

    With two filters it would not be known how many records went from one to the other.
    """
    run: list[ChainNode] = []
    filters = 0
    while True:
        kind = type(node.operator)
        filters += kind is FilterOperator
        if kind not in {MapOperator, FilterOperator} or filters > 1:
            return run
        run.append(node)
        main = node.main
        if len(node.routes) > 1 or main.writers or len(main.children) != 1:
            return run
        node = main.children[0]


class FusedStages:
    """The loop of a run of operators; takes the batches that the first of them would get."""

    def __init__(
        self, run: list[ChainNode], filters: list[bool], first: StageLoops, loops: StageLoops
    ) -> None:
        self._run = run
        self._last = run[-1]
        self._filter = filters.index(True) if True in filters else None
        self._loops = first
        """What functions give is looked at in the first batch only."""
        self._next_loops = loops

    def push(self, batch: RecordBatch) -> Unfinished:
        """Runs all stages over the batch and sends what comes out on from the last one."""
        values = batch.values
        timestamps = batch.timestamps
        records = iter(values)
        loops = self._loops
        try:
            if timestamps is None or self._filter is None:
                out = loops.untimed(records)
            else:
                out, timestamps = loops.timed(zip(records, timestamps, strict=False))
        except USER_FAILURES as error:
            index = len(values) - length_hint(records) - 1
            raise self._failure(error, batch, index) from error
        self._loops = self._next_loops
        self._count(len(values), len(out))
        if not out:
            return None
        origin = batch.origin
        if origin is not None and len(out) < len(values):
            origin = partial(_between, origin, len(values) - len(out))
        return self._last.push_on((RecordBatch(out, timestamps, None, origin),))

    def _count(self, records_in: int, records_out: int) -> None:
        """What the operators would have counted; the last one's output is counted by itself."""
        records = records_in
        for index, node in enumerate(self._run):
            node.records_in += records
            if index == self._filter:
                records = records_out
            if node is not self._last:
                node.records_out += records

    def _failure(self, error: BaseException, batch: RecordBatch, index: int) -> OperatorFailure:
        """The failure of the stage whose function raised, on the record that it had."""
        for frame, instruction in _frames(error):
            stage = self._loops.stage_at(frame.f_code, instruction)
            if stage is not None:
                value = frame.f_locals.get(self._loops.variables[stage])
                place = None if batch.origin is None else partial(_at, batch.origin, index)
                own = RecordBatch([value], None, None, place)
                return self._run[stage].record_failure(error, own, 0)
        return self._last.record_failure(error, batch, index)

    def stage_at(self, code: CodeType, instruction: int) -> ChainNode | None:
        """The operator that an instruction of the loop is of; None for other code."""
        stage = self._loops.stage_at(code, instruction)
        return None if stage is None else self._run[stage]


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames of a traceback, outermost first, each with the instruction it was at."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lasti
        trace = trace.tb_next


def _at(origin: Callable[[int], str], place: int, _: int) -> str:
    return origin(place)


def _between(origin: Callable[[int], str], dropped: int, index: int) -> str:
    """Where a record behind a filter came from, as far as the number of dropped ones tells.

    To note which ones were dropped would cost each record a fifth more.
    """
    return f"{origin(index)} or behind it, up to {origin(index + dropped)}"


def _checked(function: Callable[[object], object], drops: bool) -> Callable[[object], object]:
    def call(value: object) -> object:
        result = function(value)  # The user's function.
        if type(result) is CoroutineType:
            refuse_coroutines([result], "filter" if drops else "map")
        return result

    return call
