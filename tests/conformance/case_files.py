"""The conformance cases in a folder: what Flink printed, and what of it is for us."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operators.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, RECORD_TIMESTAMP_LIMIT

LATER = "comes with a later version"
KINDS = frozenset(
    {
        "window",
        "keyed_process",
        "timestamps_and_watermarks",
        "watermark_valve",
        "watermark_multiplexer",
    }
)
WINDOWS = frozenset(
    {
        "tumbling_event_time",
        "tumbling_processing_time",
        "sliding_event_time",
        "sliding_processing_time",
    }
)
TRIGGERS = frozenset({"event_time", "processing_time", "purging"})
STRATEGIES = frozenset(
    {"bounded_out_of_orderness", "monotonous", "punctuated_on_value_negative", "no_watermarks"}
)


@dataclass(frozen=True, slots=True)
class Case:
    """One case; `expected[i]` is all that comes out during `steps[i]`."""

    theme: str
    name: str
    operator: dict[str, Any]
    steps: list[dict[str, Any]]
    expected: list[list[dict[str, Any]]]
    regresses: bool
    """Its watermarks fall, which no operator behind a valve ever sees."""

    @property
    def id(self) -> str:
        return f"{self.theme}-{self.name}"

    @property
    def kind(self) -> str:
        return str(self.operator["kind"])

    @property
    def left_out(self) -> str | None:
        """Why this version is not to pass the case, None if it is."""
        operator = self.operator
        if self.kind not in KINDS:
            return f"operator {self.kind}: {LATER}"
        if self.kind == "window":
            return _window_left_out(operator)
        if any("ttl" in state for state in operator.get("states", ())):
            return f"state with a time to live: {LATER}"
        strategy = operator.get("strategy", {}).get("type")
        if strategy is not None and strategy not in STRATEGIES:
            return f"watermark strategy {strategy}: unknown to the runner"
        return None


def _window_left_out(operator: dict[str, Any]) -> str | None:
    window = operator["window"]["type"]
    if window not in WINDOWS:
        return f"windows {window}: {LATER}"
    trigger = operator.get("trigger")
    while trigger is not None:
        if trigger["type"] not in TRIGGERS:
            return f"trigger {trigger['type']}: {LATER}"
        trigger = trigger.get("inner")
    return f"evictors: {LATER}" if "evictor" in operator else None


def load_cases(folder: Path) -> Iterator[Case]:
    """Every case of every file; files of tables have none."""
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for raw in content.get("cases", ()):
            yield _with_our_refusals(
                Case(
                    theme=path.stem,
                    name=raw["name"],
                    operator=raw["operator"],
                    steps=raw["steps"],
                    expected=raw["expected"],
                    regresses=bool(raw.get("harness_only_regressing_watermark")),
                )
            )


def load_tables(folder: Path, name: str) -> dict[str, Any] | None:
    """The tables of a file, None if the folder does not have it."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    tables: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return tables


def _with_our_refusals(case: Case) -> Case:
    """Expects an error from the first record on whose timestamp is beyond what we take.

    Flink's windows wrap around there; ours refuse timestamps of records beyond +-2**62 ms.
    """
    for index, step in enumerate(case.steps[: len(case.expected)]):
        stamped = [step.get("ts")] if "record" in step else []
        if case.kind == "timestamps_and_watermarks" and "record" in step:
            stamped += [output["ts"] for output in case.expected[index] if "record" in output]
        if any(_refused(timestamp) for timestamp in stamped):
            expected = copy.deepcopy(case.expected[:index])
            expected.append([{"error": "record timestamp beyond +-2**62 ms"}])
            return Case(case.theme, case.name, case.operator, case.steps, expected, case.regresses)
    return case


def _refused(timestamp: int | None) -> bool:
    if timestamp is None or timestamp == MIN_TIMESTAMP:
        return False
    return abs(timestamp) >= RECORD_TIMESTAMP_LIMIT or timestamp == MAX_TIMESTAMP
