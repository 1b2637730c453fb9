"""The figures of a job, added up from its tasks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from operators.builtin import CollectSink
from operators.output_tag import OutputTag
from operators.sink_operator import SinkOperator
from operators.triggers import EventTimeTrigger
from operators.window_contents import ListContents
from operators.window_operator import LATE_COUNTER, WindowOperator
from operators.windows import TumblingEventTimeWindows
from runtime.chain import ChainNode
from runtime.statistics import count_records, lowest_sink_watermark, warn_of_late_records
from tests.runtime.chain_parts import Relay, node
from tests.runtime.task_rig import Items, reading


def counted(operator: Any, records_in: int, records_out: int) -> ChainNode:
    made = ChainNode(operator, node(Relay()).context)
    made.records_in, made.records_out = records_in, records_out
    return made


def sink() -> SinkOperator:
    return SinkOperator(CollectSink())


def task(watermark: int | None, *operators: Any) -> Any:
    return SimpleNamespace(
        watermark=watermark, nodes=[counted(operator, 0, 0) for operator in operators]
    )


def test_sources_and_sinks_are_counted() -> None:
    """What sources put out and what sinks took; nothing in between."""
    nodes = [
        counted(reading(Items()), 0, 10),
        counted(reading(Items()), 0, 5),
        counted(Relay(), 15, 7),
        counted(sink(), 3, 0),
        counted(sink(), 4, 0),
    ]
    assert count_records(nodes) == (15, 7)


def test_the_lowest_watermark_of_the_sinks_counts() -> None:
    """The job is as far as its slowest end."""
    assert lowest_sink_watermark([task(9, sink()), task(4, Relay(), sink()), task(1, Relay())]) == 4


def test_without_a_watermark_everywhere_there_is_none() -> None:
    """One sink that has none yet may be anywhere."""
    assert lowest_sink_watermark([task(9, sink()), task(None, sink())]) is None
    assert lowest_sink_watermark([]) is None


def windows(late: int, tag: OutputTag[Any] | None = None) -> ChainNode:
    assigner = TumblingEventTimeWindows.of(10)
    made = counted(WindowOperator(assigner, EventTimeTrigger(), ListContents(), late_tag=tag), 0, 0)
    made.context.metrics.counter(LATE_COUNTER).inc(late)
    return made


def test_the_operator_that_dropped_late_records_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """The subtasks of an operator are told as one."""
    warn_of_late_records("visits", [windows(3), windows(4), counted(Relay(), 1, 1)])
    context = windows(0).context
    operator = f"{context.operator_name!r} (uid {context.uid})"
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        f"job 'visits': operator {operator} dropped 7 late records"
    ]


def test_late_records_that_are_not_lost_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """Those of a side output are where the job wanted them."""
    warn_of_late_records("visits", [windows(3, OutputTag("late")), windows(0)])
    assert caplog.records == []
