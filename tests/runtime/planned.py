"""Vertices of a plan for tests, without a graph."""

from operators.stream_operator import StreamOperator
from runtime.plan import PlannedOperator, Vertex


def no_operator() -> StreamOperator:
    raise AssertionError("these plans are never deployed")


def planned(
    uid: str, node_id: int = 1, *, parallelism: int = 1, max_parallelism: int = 8
) -> PlannedOperator:
    return PlannedOperator(
        node_id=node_id,
        name=f"operator {uid}",
        uid=uid,
        factory=no_operator,
        keyed=True,
        source=None,
        is_sink=False,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
    )


def vertex(vertex_id: int, *operators: PlannedOperator) -> Vertex:
    return Vertex(vertex_id, operators[0].parallelism, list(operators))
