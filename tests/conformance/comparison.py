"""Compares what came out of a step (or of several in one) with what Flink put out.

Main output and each side output are compared on their own, in order. Records in a row with one
timestamp may come in any order, since timers are ordered by their time only. After a rescale
which subtask puts out what is nobody's business: records are compared as a multiset, watermarks
and statuses as a set. Every clear error stands for any of Java's.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

Output = dict[str, Any]

MULTISETS = ("values", "left", "right")
"""Fields whose order is not promised where windows merge."""


def is_error(outputs: list[Output]) -> bool:
    """Whether the outputs end the case: the job could not be built, or it failed."""
    return any("record" not in o and ("error" in o or "build_error" in o) for o in outputs)


def agrees(
    expected: list[Output], got: list[Output], *, merging: bool = False, rescaled: bool = False
) -> bool:
    """Whether two lists of outputs are the same by the rules above."""
    if is_error(expected) or is_error(got):
        return is_error(expected) and is_error(got)
    order = _as_bags if rescaled else _as_streams
    return order(expected, merging) == order(got, merging)


def _as_streams(outputs: list[Output], merging: bool) -> dict[object, list[list[str]]]:
    """By side output: runs of records of one timestamp, sorted, and what lies between them."""
    streams: dict[object, list[Output]] = {}
    for output in outputs:
        streams.setdefault(output.get("side"), []).append(output)
    return {side: _runs(stream, merging) for side, stream in streams.items()}


def _runs(stream: list[Output], merging: bool) -> list[list[str]]:
    def place(numbered: tuple[int, Output]) -> object:
        index, output = numbered
        return ("record", output.get("ts")) if "record" in output else ("control", index)

    return [
        sorted(_text(output, merging) for _, output in run)
        for _, run in groupby(enumerate(stream), place)
    ]


def _as_bags(outputs: list[Output], merging: bool) -> tuple[list[str], set[str]]:
    records = sorted(_text(output, merging) for output in outputs if "record" in output)
    return records, {_text(output, merging) for output in outputs if "record" not in output}


def _text(output: Output, merging: bool) -> str:
    record = output.get("record")
    if isinstance(record, dict):
        record = dict(record)
        if "error" in record:
            record["error"] = True
        if merging:
            for name in MULTISETS:
                if isinstance(record.get(name), list):
                    record[name] = sorted(record[name], key=json.dumps)
        output = {**output, "record": record}
    return json.dumps(output, sort_keys=True)
