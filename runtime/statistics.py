"""What the tasks of an attempt count, added up for the job."""

from __future__ import annotations

from collections.abc import Iterable

from operators.sink_operator import SinkOperator
from operators.source_operator import SourceOperator
from runtime.chain import ChainNode
from runtime.task import Task


def count_records(nodes: Iterable[ChainNode]) -> tuple[int, int]:
    """Records that sources have put out and that sinks have taken."""
    records_in = records_out = 0
    for node in nodes:
        if isinstance(node.operator, SourceOperator):
            records_in += node.records_out
        elif isinstance(node.operator, SinkOperator):
            records_out += node.records_in
    return records_in, records_out


def lowest_sink_watermark(tasks: Iterable[Task]) -> int | None:
    """The lowest watermark of the tasks with a sink; None before all have one."""
    watermarks = [
        task.watermark
        for task in tasks
        if any(isinstance(node.operator, SinkOperator) for node in task.nodes)
    ]
    known = [watermark for watermark in watermarks if watermark is not None]
    return min(known) if known and len(known) == len(watermarks) else None
