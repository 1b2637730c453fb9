"""Batch boundaries are unobservable: a list in state, handed out and changed at each record."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from runtime import (
    Configuration,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from runtime.testing import OperatorHarness

RECORDS = [(f"k{number * number % 7}", number) for number in range(3_000)]
BATCH_SIZES = [1, 7, 1_024]


class LastThree(KeyedProcessFunction[str, tuple[str, int], Any]):
    """Keeps the last values of a key in one list, changes it in place and puts it out."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor[list[int]]("last"))

    def process_element(
        self, value: tuple[str, int], ctx: KeyedProcessFunction.Context
    ) -> Iterator[Any]:
        last = self._last.value() or []
        last.append(value[1])
        del last[:-3]
        self._last.update(last)
        yield last
        yield value[0], last


class InManyPlaces(KeyedProcessFunction[str, tuple[str, int], Any]):
    """Puts its list out deep inside, in parts, and before it stores it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._seen = runtime_context.get_state(ValueStateDescriptor[dict[str, list[int]]]("seen"))

    def process_element(
        self, value: tuple[str, int], ctx: KeyedProcessFunction.Context
    ) -> Iterator[Any]:
        seen = self._seen.value()
        if seen is None:
            seen = {"last": [value[1]]}
            yield seen
            yield value[0], [seen]
            self._seen.update(seen)
        seen["last"].append(value[1])
        del seen["last"][:-3]
        yield seen["last"]
        yield {"key": value[0], "deep": [(1, seen)]}


@pytest.mark.parametrize("batch_records", BATCH_SIZES[1:])
def test_whatever_an_output_shares_with_state(batch_records: int) -> None:
    """It is put out as it was when the call ended, or as it was in between if state held it."""

    def outputs(batch_records: int) -> list[Any]:
        harness = OperatorHarness.of(
            lambda records: records.key_by(lambda record: record[0]).process(InManyPlaces()),
            batch_records=batch_records,
        )
        values = []
        for start in range(0, 300, batch_records):
            harness.process_all(RECORDS[start : min(start + batch_records, 300)])
            # What comes later must not show here, be the batches long or short.
            values += copy.deepcopy(harness.values()[len(values) :])
        return values

    assert outputs(batch_records) == outputs(1)


def last_three(records: DataStream[Any]) -> DataStream[Any]:
    return records.key_by(lambda record: record[0]).process(LastThree())


def expected() -> list[Any]:
    """What a loop over the records would put out."""
    lists: dict[str, list[int]] = {}
    outputs: list[Any] = []
    for key, value in RECORDS:
        lists[key] = [*lists.get(key, []), value][-3:]
        outputs += [lists[key], (key, lists[key])]
    return outputs


@pytest.mark.parametrize("batch_records", BATCH_SIZES)
def test_a_list_in_state_in_a_job(batch_records: int) -> None:
    """Each output is the list as it was at its record, whatever came behind it in the batch."""
    configuration = Configuration()
    configuration.set_integer("riverrun.batch.records", batch_records)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    with last_three(env.from_collection(RECORDS)).execute_and_collect() as outputs:
        assert list(outputs) == expected()


@pytest.mark.parametrize("batch_records", BATCH_SIZES)
def test_a_list_in_state_in_the_harness(batch_records: int) -> None:
    """The same step by step."""
    harness = OperatorHarness.of(last_three, batch_records=batch_records)
    harness.process_all(RECORDS)
    assert harness.values() == expected()
