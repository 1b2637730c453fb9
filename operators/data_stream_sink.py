"""The end of a stream."""

from __future__ import annotations

from operators.graph import StreamGraph, StreamNode
from operators.stream_settings import OperatorSettings


class DataStreamSink(OperatorSettings):
    """A sink in the job, for its settings (PyFlink: `DataStreamSink`)."""

    def __init__(self, graph: StreamGraph, node: StreamNode) -> None:
        self._graph = graph
        self._node = node

    def _own_node(self, method: str) -> StreamNode:
        return self._node
