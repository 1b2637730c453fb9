"""Runs operators in every way in which the outcome must be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from typing import Any, TypeAlias

from operators.elements import Watermark, WatermarkStatus
from runtime.testing.harness import OperatorHarness
from runtime.testing.outputs import Emitted, EmittedRecord
from runtime.testing.pipeline import Build

PARALLELISMS = (1, 3, 2)
"""Through these the rescaled run goes, step by step."""


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record that comes in."""

    value: object
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessingTime:
    """The clock moves to `now_ms` in one jump."""

    now_ms: int


Step: TypeAlias = InputRecord | Watermark | WatermarkStatus | ProcessingTime
"""What a verification is made of; records in a row can come in one batch."""

Play = Callable[[OperatorHarness, Sequence[Step]], None]


def verify_operators(
    build: Build,
    steps: Iterable[Step],
    *,
    end_input: bool = True,
    rescale: bool = True,
    ordered: bool = True,
    **options: Any,
) -> list[Emitted]:
    """Carries the steps out again and again; returns what came out, the same each time.

    Record by record, records in a row as one batch or in batches of seven, without chaining, with
    pauses at each output, through channels of one record, restored before each step, and (if
    `rescale`) at another parallelism at each step. Records of one timestamp may change places
    between two watermarks, since timers are ordered by time only; after a rescale all records
    between two steps may.

    Args:
        build: as for `OperatorHarness`.
        steps: what comes in.
        end_input: whether the input ends after the last step.
        rescale: whether the operators may run at any parallelism.
        ordered: False where records come by several ways (a union, side outputs of one tag from
            several operators): among each other these have no order.
        options: further options of `OperatorHarness`.

    Raises:
        AssertionError: an outcome differs; says in which run and where.
    """
    planned = list(steps)
    runs: dict[str, tuple[dict[str, Any], Play]] = {
        "record by record": ({}, _play_one_by_one),
        "records in a row as one batch": ({}, _play_in_batches),
        "batches of 7 records": ({"batch_records": 7}, _play_in_batches),
        "operators not chained": ({"chaining": False}, _play_in_batches),
        "a pause at each output": ({"pauses": True}, _play_in_batches),
        "channels of one record": ({"channel_capacity": 1}, _play_in_batches),
        "restored before each step": ({"restore_between_steps": True}, _play_one_by_one),
    }
    if rescale:
        runs["rescaled before each step"] = ({}, _play_rescaled)
    outcomes: dict[str, list[Emitted]] = {}
    for name, (more, play) in runs.items():
        with OperatorHarness.of(build, **{**options, **more}) as harness:
            play(harness, planned)
            if end_input:
                harness.end_input()
            outcomes[name] = harness.emitted
    reference_name, reference = next(iter(outcomes.items()))
    for name, outcome in outcomes.items():
        in_order = ordered and not name.startswith("rescaled")
        _check(name, outcome, reference_name, reference, ordered=in_order)
    return reference


def _play_one_by_one(harness: OperatorHarness, steps: Sequence[Step]) -> None:
    for step in steps:
        _act(harness, [step])


def _play_in_batches(harness: OperatorHarness, steps: Sequence[Step]) -> None:
    numbered = enumerate(steps)
    for _, run in groupby(numbered, lambda n: -1 if isinstance(n[1], InputRecord) else n[0]):
        _act(harness, [step for _, step in run])


def _play_rescaled(harness: OperatorHarness, steps: Sequence[Step]) -> None:
    for step, parallelism in zip(steps, cycle(PARALLELISMS), strict=False):
        harness.restore(parallelism=parallelism, keep_watermark=True)
        _act(harness, [step])


def _act(harness: OperatorHarness, steps: Sequence[Step]) -> None:
    step = steps[0]
    if isinstance(step, InputRecord):
        records = [record for record in steps if isinstance(record, InputRecord)]
        harness.process_all(
            [record.value for record in records], [record.timestamp for record in records]
        )
    elif isinstance(step, Watermark):
        harness.watermark(step.timestamp)
    elif isinstance(step, WatermarkStatus):
        (harness.idle if step.idle else harness.active)()
    else:
        harness.set_processing_time(step.now_ms)


# -- comparing -------------------------------------------------------------------------------------


def _check(
    name: str,
    outcome: list[Emitted],
    reference_name: str,
    reference: list[Emitted],
    *,
    ordered: bool,
) -> None:
    arrange = _ordered if ordered else _unordered
    for got, wanted in zip(arrange(outcome), arrange(reference), strict=True):
        if got == wanted:
            continue
        at = next(
            (i for i, (one, other) in enumerate(zip(got, wanted, strict=False)) if one != other),
            min(len(got), len(wanted)),
        )
        raise AssertionError(
            f"the outcome depends on how the operators are run, first at output {at}:\n"
            f"{name}: {got[at : at + 3]}\n{reference_name}: {wanted[at : at + 3]}"
        )


def _ordered(emitted: list[Emitted]) -> tuple[list[str], list[str]]:
    """Main output and side outputs, records of one timestamp in a row sorted."""
    main = [e for e in emitted if not isinstance(e, EmittedRecord) or e.side is None]
    sides = [e for e in emitted if isinstance(e, EmittedRecord) and e.side is not None]
    sides.sort(key=lambda record: str(record.side))
    return list(_sorted_runs(main)), list(_sorted_runs(sides))


def _sorted_runs(emitted: Sequence[Emitted]) -> Iterator[str]:
    for _, run in groupby(
        emitted, lambda e: (e.side, e.timestamp) if isinstance(e, EmittedRecord) else None
    ):
        elements = list(run)
        texts = map(repr, elements)
        yield from sorted(texts) if isinstance(elements[0], EmittedRecord) else texts


def _unordered(emitted: list[Emitted]) -> tuple[list[str], list[str]]:
    """The records as a multiset, watermarks and statuses as a set."""
    records = sorted(repr(e) for e in emitted if isinstance(e, EmittedRecord))
    return records, sorted({repr(e) for e in emitted if not isinstance(e, EmittedRecord)})
