"""Runs a case in one of four modes and says where it differs from Flink."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, Self

from operators.combined_watermark import SplitWatermarks
from operators.elements import MIN_TIMESTAMP
from runtime.testing import Emitted, EmittedRecord, OperatorHarness, Watermark
from runtime.valve import WatermarkValve
from tests.conformance.case_files import Case
from tests.conformance.comparison import Output, agrees, is_error
from tests.conformance.process_subject import Interpreter
from tests.conformance.time_subject import build_timestamps
from tests.conformance.window_subject import build_windows

CUT_SEED = 20_260
LONGEST_CUT = 7


class Mode(Enum):
    """How the steps of a case are carried out."""

    AS_WRITTEN = "as_written"
    RESTORED = "restored_before_each_step"
    BATCHED = "records_in_one_batch"
    CUT = "records_cut_at_random"
    UNFOLDED = "windows_record_by_record"
    """By the general window operator, where the one for whole batches would do."""


RESTORABLE = ("a_", "d_", "f_")
"""Themes whose operators keep everything that matters in state."""

PURE = ("watermark_valve", "watermark_multiplexer")
"""Kinds without records and state."""


def modes_of(case: Case) -> Iterator[Mode]:
    """The modes that differ for a case."""
    yield Mode.AS_WRITTEN
    if case.kind in PURE:
        return
    if case.theme.startswith(RESTORABLE):
        yield Mode.RESTORED
    yield Mode.BATCHED
    yield Mode.CUT
    if case.kind == "window" and "trigger" not in case.operator:
        yield Mode.UNFOLDED


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Outputs that are not Flink's."""

    steps: list[dict[str, Any]]
    expected: list[Output]
    got: list[Output]

    def __str__(self) -> str:
        return f"steps    {self.steps}\nexpected {self.expected}\ngot      {self.got}"


def mismatches(case: Case, mode: Mode) -> list[Mismatch]:
    """Where the case's outputs differ from what Flink put out; empty where none does."""
    merging = str(case.operator.get("window", {}).get("type", "")).startswith("session")
    found: list[Mismatch] = []
    rescaled = False
    with _Subject(case, mode) as subject:
        for first, last in _groups(case, mode):
            steps = case.steps[first:last]
            expected = [o for outputs in case.expected[first:last] for o in outputs]
            rescaled = rescaled or any("rescale" in step for step in steps)
            got = subject.carry_out(steps)
            if not agrees(expected, got, merging=merging, rescaled=rescaled):
                found.append(Mismatch(steps, expected, got))
            if is_error(expected) or is_error(got):
                break
    return found


def _groups(case: Case, mode: Mode) -> Iterator[tuple[int, int]]:
    """The steps that are carried out at once: (first, behind the last)."""
    random = Random(f"{CUT_SEED} {case.id}")
    count = min(len(case.steps), len(case.expected))
    start = 0
    while start < count:
        end = start + 1
        if mode in {Mode.BATCHED, Mode.CUT} and "record" in case.steps[start]:
            longest = count if mode is Mode.BATCHED else random.randint(1, LONGEST_CUT)
            while end < min(count, start + longest) and "record" in case.steps[end]:
                end += 1
        yield start, end
        start = end


class _Subject:
    """What a case is about, and its outputs in the words of the cases."""

    def __init__(self, case: Case, mode: Mode) -> None:
        self._case = case
        self._build_error: Exception | None = None
        self._harness: OperatorHarness | None = None
        self._pure: Callable[[dict[str, Any]], tuple[Any, ...]] | None = None
        if case.kind == "watermark_valve":
            self._pure = _valve_step(WatermarkValve(case.operator["inputs"]))
        elif case.kind == "watermark_multiplexer":
            self._pure = _multiplexer_step(SplitWatermarks())
        else:
            try:
                self._harness = _harness(case, mode)
            except Exception as error:
                self._build_error = error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._harness is not None:
            self._harness.close()

    def carry_out(self, steps: list[dict[str, Any]]) -> list[Output]:
        if self._build_error is not None:
            return [{"build_error": repr(self._build_error)}]
        if self._pure is not None:
            return [self._output(element) for step in steps for element in self._pure(step)]
        assert self._harness is not None
        before = len(self._harness.emitted)
        try:
            _act(self._harness, steps)
        except Exception as error:
            return [{"error": repr(error)}]
        return [self._output(element) for element in self._harness.emitted[before:]]

    def _output(self, element: Emitted) -> Output:
        if isinstance(element, EmittedRecord):
            timestamp = element.timestamp
            if timestamp is None and self._case.kind == "timestamps_and_watermarks":
                timestamp = MIN_TIMESTAMP  # How Flink says there that a record has none.
            record: Output = {"record": element.value, "ts": timestamp}
            return record if element.side is None else {"side": element.side, **record}
        if isinstance(element, Watermark):
            return {"watermark": element.timestamp}
        return {"status": "idle" if element.idle else "active"}


def _harness(case: Case, mode: Mode) -> OperatorHarness:
    operator = case.operator
    options: dict[str, Any] = {
        "through_valve": False,
        "restore_between_steps": mode is Mode.RESTORED,
        "auto_watermark_interval": operator.get("auto_watermark_interval_ms", 200),
    }
    if case.kind == "window":
        build = build_windows(operator, folded=mode is not Mode.UNFOLDED)
        return OperatorHarness.of(build, **options)
    if case.kind == "keyed_process":
        return OperatorHarness.of_function(
            Interpreter(operator), lambda record: record[0], **options
        )
    return OperatorHarness.of(build_timestamps(operator), **options)


def _act(harness: OperatorHarness, steps: list[dict[str, Any]]) -> None:
    step = steps[0]
    if "record" in step:
        values = [tuple(each["record"]) for each in steps]
        harness.process_all(values, [each.get("ts") for each in steps])
    elif "watermark" in step:
        harness.watermark(step["watermark"])
    elif "processing_time" in step:
        harness.set_processing_time(step["processing_time"])
    elif "status" in step:
        (harness.idle if step["status"] == "idle" else harness.active)()
    elif "snapshot_restore" in step:
        harness.restore()
    elif "rescale" in step:
        harness.rescale(step["rescale"])
    elif "end_input" in step:
        harness.finish_operators()
    else:
        raise AssertionError(f"step {step}")


def _valve_step(valve: WatermarkValve) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    def step(described: dict[str, Any]) -> tuple[Any, ...]:
        if "watermark" in described:
            return valve.watermark(described["input"], described["watermark"])
        return valve.status(described["input"], described["status"] == "idle")

    return step


def _multiplexer_step(splits: SplitWatermarks) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    def step(described: dict[str, Any]) -> tuple[Any, ...]:
        if "register" in described:
            splits.register(described["register"])
        elif "unregister" in described:
            splits.unregister(described["unregister"])
        elif "watermark" in described:
            rose = splits.update(described["output"], described["watermark"])
            if not rose:
                return ()
        elif "status" in described:
            splits.mark(described["output"], described["status"] == "idle")
        immediate = described.get("immediate") or described.get("periodic")
        return splits.elements() if immediate else ()

    return step
