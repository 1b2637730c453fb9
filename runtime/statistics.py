"""What the tasks of an attempt count, added up for the job."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable

from operators.sink_operator import SinkOperator
from operators.source_operator import SourceOperator
from operators.window_operator import LATE_COUNTER, WindowOperator
from runtime.chain import ChainNode
from runtime.task import Task

logger = logging.getLogger(__name__)


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


def warn_of_late_records(job_name: str, nodes: Iterable[ChainNode]) -> None:
    """Says which operators have dropped late records: results lack them, and nothing else tells."""
    dropped: Counter[tuple[str, str]] = Counter()
    for node in nodes:
        if isinstance(node.operator, WindowOperator) and node.operator.drops_late:
            late = node.context.metrics.counter(LATE_COUNTER).count
            dropped[node.context.operator_name, node.context.uid] += late
    for (name, uid), count in dropped.items():
        if count:
            logger.warning(
                "job %r: operator %r (uid %s) dropped %d late records; fewer are late with a larger"
                " bound, or a strategy given to from_source, where each split has a watermark of "
                "its own; allowed_lateness takes them in, side_output_late_data keeps them",
                job_name,
                name,
                uid,
                count,
            )
