"""A job's graph as Flink shows it: JSON of nodes and their predecessors."""

from __future__ import annotations

import json

from operators.graph import StreamGraph, StreamNode


def execution_plan_json(graph: StreamGraph, parallelism: int) -> str:
    """The nodes of the graph with types, parallelism and inputs; `parallelism` is the job's."""
    uids = graph.uids()
    nodes = [
        {
            "id": node.id,
            "type": node.name,
            "uid": uids[node.id],
            "pact": _pact(node),
            "contents": node.description or node.name,
            "parallelism": parallelism if node.parallelism is None else node.parallelism,
            "predecessors": [
                {"id": edge.source, "ship_strategy": edge.partitioning.upper()}
                for edge in node.inputs
            ],
        }
        for node in graph.nodes.values()
    ]
    return json.dumps({"nodes": nodes}, indent=2)


def _pact(node: StreamNode) -> str:
    if node.source is not None:
        return "Data Source"
    return "Data Sink" if node.is_sink else "Operator"
