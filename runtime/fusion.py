"""Fuses neighbouring maps and filters of a chain into one generated loop.

A call from a loop in Python is cheaper than the same call through `map`, and no list is built
between two operators: map, filter, map cost 0.6 of what they cost one by one. The operators stay
what they are for everything else: opening and closing, watermarks, metrics and failures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import length_hint
from types import CodeType, CoroutineType
from typing import TypeAlias

from operators.elements import RecordBatch
from operators.outputs import refuse_coroutines
from operators.stateless import FilterOperator, MapOperator
from runtime.chain import ChainNode, Unfinished
from runtime.errors import USER_FAILURES

STAGES_MIN = 2


def fuse(nodes: list[ChainNode]) -> None:
    """Gives each run of maps and filters in a chain its loop; called once they are open."""
    fused: set[int] = set()
    for node in nodes:
        if id(node) in fused or node.copies_input:
            continue
        run = _run_from(node)
        if len(run) >= STAGES_MIN:
            fused.update(map(id, run))
            node.fused = FusedStages(run)


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

    def __init__(self, run: list[ChainNode]) -> None:
        self._run = run
        self._last = run[-1]
        self._filters = any(type(node.operator) is FilterOperator for node in run)
        functions = [node.operator.call for node in run]  # type: ignore[attr-defined]  # maps and filters
        self._make = _generate(run)
        self._untimed, self._timed = self._make(*map(_checked, functions))
        self._unchecked: Sequence[Callable[[object], object]] = functions
        self._before_filter = next(
            (i for i, node in enumerate(run) if type(node.operator) is FilterOperator), len(run)
        )

    def push(self, batch: RecordBatch) -> Unfinished:
        """Runs all stages over the batch and sends what comes out on from the last one."""
        values = batch.values
        timestamps = batch.timestamps
        records = iter(values)
        try:
            if timestamps is None or not self._filters:
                out = self._untimed(records)
            else:
                out, timestamps = self._timed(records, timestamps)
        except USER_FAILURES as error:
            index = len(values) - length_hint(records) - 1
            raise self._stage_of(error).record_failure(error, batch, index) from error
        if self._unchecked:
            # What functions give is looked at in the first batch only.
            self._untimed, self._timed = self._make(*self._unchecked)
            self._unchecked = ()
        self._count(len(values), len(out))
        if not out:
            return None
        origin = None if self._filters else batch.origin
        return self._last.push_on((RecordBatch(out, timestamps, None, origin),))

    def _count(self, records_in: int, records_out: int) -> None:
        """What the operators would have counted; the last one's output is counted by itself."""
        for index, node in enumerate(self._run):
            node.records_in += records_in if index <= self._before_filter else records_out
            if node is not self._last:
                node.records_out += records_in if index < self._before_filter else records_out

    def _stage_of(self, error: BaseException) -> ChainNode:
        """The operator whose function raised: the line of the loop says which."""
        trace = error.__traceback__
        while trace is not None:
            stage = self.stage_at(trace.tb_frame.f_code, trace.tb_lineno)
            if stage is not None:
                return stage
            trace = trace.tb_next
        return self._last

    def stage_at(self, code: CodeType, line: int) -> ChainNode | None:
        """The operator whose function the loop calls in a line; None for other code."""
        if code not in {self._untimed.__code__, self._timed.__code__}:
            return None
        return self._run[line - code.co_firstlineno - _LINES_BEFORE_STAGES]


_LINES_BEFORE_STAGES = 3

_Loops: TypeAlias = tuple[
    Callable[..., list[object]], Callable[..., tuple[list[object], list[int | None]]]
]


def _checked(function: Callable[[object], object]) -> Callable[[object], object]:
    def call(value: object) -> object:
        result = function(value)  # The user's function.
        if type(result) is CoroutineType:
            refuse_coroutines([result], "the function")
        return result

    return call


def _generate(run: list[ChainNode]) -> Callable[..., _Loops]:
    """Makes, from the stages' functions, loops over records alone and with their timestamps."""
    names = [f"f{index}" for index in range(len(run))]
    stages = []
    for name, node in zip(names, run, strict=True):
        keeps = type(node.operator) is FilterOperator
        stages.append(f"if not {name}(v): continue" if keeps else f"v = {name}(v)")
    body = "\n            ".join(stages)
    # As defaults the functions are the loop's own variables, which are the fastest to reach.
    given = ", ".join(f"{name}={name}" for name in names)
    source = f"""
def make({", ".join(names)}):
    def untimed(records, {given}):
        out = []
        for v in records:
            {body}
            out.append(v)
        return out
    def timed(records, timestamps, {given}):
        out = []; times = []
        for v, t in zip(records, timestamps):
            {body}
            out.append(v); times.append(t)
        return out, times
    return untimed, timed
"""
    namespace: dict[str, Callable[..., _Loops]] = {}
    # The source is made of the fixed text above; under this file's name, so that reports of
    # failures leave the loop out as they leave out the rest of the runtime.
    exec(compile(source, __file__, "exec"), namespace)
    return namespace["make"]
