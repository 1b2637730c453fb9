"""A graph without an environment, and streams in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from operators.builtin import CollectionSource
from operators.datastream import DataStream, source_stream
from operators.graph import StreamGraph, StreamNode
from operators.result_buffer import ResultBuffer
from operators.watermarks import WatermarkStrategy

T = TypeVar("T")


class Owner:
    """Runs no job; hands out results that are given to it."""

    def __init__(self, results: list[object] | None = None) -> None:
        self.results = results or []
        self.started: list[str | None] = []
        self.stopped = 0

    def get_config(self) -> object:
        return "settings"

    def start_collecting(
        self, results: ResultBuffer[object], job_name: str | None
    ) -> Callable[[], None]:
        self.started.append(job_name)
        results.put(self.results)
        results.finish()
        return self._stop

    def _stop(self) -> None:
        self.stopped += 1


def graph(owner: Owner | None = None) -> StreamGraph:
    return StreamGraph(owner or Owner())


def source(
    of: StreamGraph, values: list[T] | None = None, name: str = "numbers"
) -> DataStream[Any]:
    """A source in the graph."""
    strategy = WatermarkStrategy[Any].no_watermarks()
    return source_stream(of, CollectionSource(values or []), strategy, name)


def nodes(of: StreamGraph) -> list[str]:
    return [node.name for node in of.nodes.values()]


def last(of: StreamGraph) -> StreamNode:
    """The node that was added last."""
    return of.nodes[len(of.nodes)]
