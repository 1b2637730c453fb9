"""The execution plan: which operators share a task, with how many subtasks, joined by what edges.

Pure data made from a `StreamGraph`; `deployment.py` makes tasks and channels from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from operators.graph import ChainingStrategy, Partitioning, StreamEdge, StreamGraph, StreamNode
from operators.source import Source
from operators.stream_operator import OperatorFactory
from runtime.errors import ConfigurationError
from statebackends.keygroups import MAX_PARALLELISM_LIMIT


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """One operator with everything resolved that the graph left to the job."""

    node_id: int
    name: str
    uid: str
    factory: OperatorFactory
    keyed: bool
    source: Source[object] | None
    is_sink: bool
    parallelism: int
    max_parallelism: int


@dataclass(frozen=True, slots=True)
class ChainLink:
    """Inside a vertex: outputs (or a side output) of one operator go to another by call."""

    sender: int
    receiver: int
    side_tag: str | None


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """Channels between two vertices."""

    source_vertex: int
    source_node: int
    target_vertex: int
    partitioning: Partitioning
    key_selector: Callable[[object], Hashable] | None
    side_tag: str | None
    input_index: int


@dataclass(slots=True)
class Vertex:
    """A chain of operators that run in one task; `parallelism` tasks do so side by side."""

    id: int
    parallelism: int
    operators: list[PlannedOperator]
    """The head first, each after its sender."""
    links: list[ChainLink] = field(default_factory=list)
    inputs: list[PlannedEdge] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The names of the operators in order ("source -> map -> sink")."""
        return " -> ".join(operator.name for operator in self.operators)

    @property
    def head(self) -> PlannedOperator:
        """The operator that gets the vertex's input."""
        return self.operators[0]


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """All vertices in topological order."""

    vertices: list[Vertex]

    @property
    def operators(self) -> list[PlannedOperator]:
        """The operators of all vertices."""
        return [operator for vertex in self.vertices for operator in vertex.operators]

    def outputs_of(self, vertex: Vertex) -> list[PlannedEdge]:
        """The edges that leave a vertex."""
        return [e for v in self.vertices for e in v.inputs if e.source_vertex == vertex.id]

    def describe(self) -> str:
        """The plan as text, a line for each vertex and edge."""
        lines = []
        for vertex in self.vertices:
            lines.append(f"[{vertex.id}] {vertex.name}  (parallelism {vertex.parallelism})")
            lines += [f"      {each.name}: uid {each.uid}" for each in vertex.operators]
            for edge in vertex.inputs:
                side = f", side output {edge.side_tag!r}" if edge.side_tag else ""
                lines.append(f"      <- [{edge.source_vertex}] {edge.partitioning}{side}")
        return "\n".join(lines)


def build_plan(
    graph: StreamGraph, *, parallelism: int, max_parallelism: int, chaining: bool = True
) -> ExecutionPlan:
    """Resolves parallelism and uids, joins what may share a task.

    Raises `ConfigurationError` for a graph that cannot run.
    """
    try:
        graph.validate(parallelism)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    if not any(node.is_sink for node in graph.nodes.values()):
        raise ConfigurationError(
            "the job has no sink, so nothing would become of its results: end a stream with"
            " print(), sink_to(...) or execute_and_collect()"
        )
    uids = graph.uids()
    operators = {
        node.id: _plan_operator(node, uids[node.id], parallelism, max_parallelism)
        for node in graph.nodes.values()
    }
    chained = {
        node.id: edge
        for node in graph.nodes.values()
        if chaining and (edge := _chained_input(graph, node, operators)) is not None
    }
    return ExecutionPlan(_vertices(graph, operators, chained))


def _plan_operator(
    node: StreamNode, uid: str, parallelism: int, max_parallelism: int
) -> PlannedOperator:
    own = node.parallelism if node.parallelism is not None else parallelism
    own_max = node.max_parallelism if node.max_parallelism is not None else max_parallelism
    if not 1 <= own_max <= MAX_PARALLELISM_LIMIT:
        raise ConfigurationError(
            f"operator {node.name!r}: max parallelism {own_max} is not within"
            f" 1..{MAX_PARALLELISM_LIMIT}"
        )
    if not 1 <= own <= own_max:
        raise ConfigurationError(
            f"operator {node.name!r}: parallelism {own} is not within 1..{own_max}"
            " (its max parallelism)"
        )
    return PlannedOperator(
        node_id=node.id,
        name=node.name,
        uid=uid,
        factory=node.operator,
        keyed=node.keyed,
        source=node.source,
        is_sink=node.is_sink,
        parallelism=own,
        max_parallelism=own_max,
    )


def _chained_input(
    graph: StreamGraph, node: StreamNode, operators: dict[int, PlannedOperator]
) -> StreamEdge | None:
    """The one edge by which a node joins its sender's task, if it may (Flink: `isChainable`)."""
    if len(node.inputs) != 1:
        return None
    edge = node.inputs[0]
    sender, receiver = operators[edge.source], operators[node.id]
    fits = (
        edge.partitioning is Partitioning.FORWARD
        and sender.parallelism == receiver.parallelism
        and sender.max_parallelism == receiver.max_parallelism
        and node.chaining is ChainingStrategy.ALWAYS
        and graph.nodes[edge.source].chaining is not ChainingStrategy.NEVER
    )
    return edge if fits else None


def _vertices(
    graph: StreamGraph,
    operators: dict[int, PlannedOperator],
    chained: dict[int, StreamEdge],
) -> list[Vertex]:
    vertex_of: dict[int, Vertex] = {}
    vertices: list[Vertex] = []
    for node in graph.nodes.values():  # senders come first: a node's inputs exist before it
        operator = operators[node.id]
        edge = chained.get(node.id)
        if edge is not None:
            vertex = vertex_of[edge.source]
            vertex.operators.append(operator)
            vertex.links.append(ChainLink(edge.source, node.id, edge.side_tag))
        else:
            vertex = Vertex(len(vertices) + 1, operator.parallelism, [operator])
            vertices.append(vertex)
        vertex_of[node.id] = vertex
    for node in graph.nodes.values():
        if node.id in chained:
            continue
        for edge in node.inputs:
            vertex_of[node.id].inputs.append(
                PlannedEdge(
                    source_vertex=vertex_of[edge.source].id,
                    source_node=edge.source,
                    target_vertex=vertex_of[node.id].id,
                    partitioning=_resolve(edge, operators),
                    key_selector=edge.key_selector,
                    side_tag=edge.side_tag,
                    input_index=edge.input_index,
                )
            )
    return vertices


def _resolve(edge: StreamEdge, operators: dict[int, PlannedOperator]) -> Partitioning:
    equal = operators[edge.source].parallelism == operators[edge.target].parallelism
    if edge.partitioning is Partitioning.FORWARD and not equal:
        return Partitioning.REBALANCE
    return edge.partitioning
