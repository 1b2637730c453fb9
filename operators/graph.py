"""The stream graph: what a job says, as data; nothing here executes.

`DataStream` methods add nodes and edges; the runtime's plan reads them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from operators.stream_operator import OperatorFactory

if TYPE_CHECKING:
    from operators.result_buffer import ResultBuffer
    from operators.source import Source

UID_HEX_DIGITS = 32
"""Length of a generated uid (Flink's operator ids are 128 bits too)."""


class Partitioning(StrEnum):
    """How an edge spreads records over the receiving subtasks."""

    FORWARD = "forward"
    """To the subtask of the same index; needs equal parallelism (else it becomes REBALANCE)."""
    KEY_GROUP = "key group"
    """To the owner of the key's key group."""
    REBALANCE = "rebalance"
    """Round robin."""
    BROADCAST = "broadcast"
    """To every subtask."""


class ChainingStrategy(StrEnum):
    """Whether an operator may share a task with its neighbours (Flink's names)."""

    ALWAYS = "always"
    HEAD = "head"
    """May have chained successors but never joins its predecessor."""
    NEVER = "never"


@dataclass(slots=True)
class StreamEdge:
    """From one node (or one of its side outputs) to one input of another."""

    source: int
    target: int
    partitioning: Partitioning
    key_selector: Callable[[object], Hashable] | None = None
    side_tag: str | None = None
    input_index: int = 0
    strict: bool = False
    """`forward()` was asked for: unequal parallelism is an error instead of a rebalance."""


@dataclass(slots=True)
class StreamNode:
    """One operator of the job; `parallelism` None means the job's."""

    id: int
    name: str
    operator: OperatorFactory
    kind: str = ""
    """What the operator is, whatever the user calls it ("Map"); part of a generated uid."""
    uid: str | None = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    keyed: bool = False
    """The operator's input is keyed: it has keyed state."""
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    source: Source[object] | None = None
    is_sink: bool = False
    description: str = ""
    output_type: object | None = None
    """The type hint that the job gave for the outputs; nothing depends on it."""
    inputs: list[StreamEdge] = field(default_factory=list)

    @property
    def may_have_state(self) -> bool:
        """Whether checkpoints may hold anything of it."""
        return self.keyed or self.source is not None or self.is_sink


class GraphOwner(Protocol):
    """What a stream asks of the environment that it belongs to, without knowing its class."""

    def get_config(self) -> object:
        """The settings of operators (PyFlink: `ExecutionConfig`)."""

    def start_collecting(
        self, results: ResultBuffer[object], job_name: str | None
    ) -> Callable[[], None]:
        """Starts the job of the graph; the sink that fills `results` is part of it already.

        Calls `results.finish(error)` once at the job's end, from any thread. Returns a function
        that stops the job if it still runs and waits for its end; calling it twice is harmless.
        Raises where the job cannot run beside the caller (within a running event loop).
        """


class StreamGraph:
    """Nodes by id, in order of creation, and the owner they were made for."""

    def __init__(self, owner: GraphOwner) -> None:
        self.owner = owner
        self.nodes: dict[int, StreamNode] = {}

    def add_node(
        self, name: str, operator: OperatorFactory, *, kind: str | None = None
    ) -> StreamNode:
        """A new node with the next id; `kind` is the name unless that is the user's choice."""
        node = StreamNode(len(self.nodes) + 1, name, operator, kind if kind is not None else name)
        self.nodes[node.id] = node
        return node

    def add_edge(self, edge: StreamEdge) -> None:
        """Connects two nodes that are in the graph."""
        if edge.source not in self.nodes:
            raise ValueError(f"edge from unknown node {edge.source}")
        self.nodes[edge.target].inputs.append(edge)

    def outputs_of(self, node_id: int) -> list[StreamEdge]:
        """The edges that leave a node, in order of creation of their targets."""
        return [e for node in self.nodes.values() for e in node.inputs if e.source == node_id]

    def uids(self) -> dict[int, str]:
        """The uid of each node: the user's, else one made from the node's place in the graph.

        A generated uid depends on the kinds of the operators from the sources down to the node,
        on how they are connected, and on the order among equals; not on names, parallelism or
        what comes after. Adding or removing an operator before it changes it, so a job that is
        to be changed and continued should set uids.
        """
        uids: dict[int, str] = {}
        places: dict[int, str] = {}
        equals: Counter[str] = Counter()
        for node in self.nodes.values():
            inputs = "".join(
                f"|{places[e.source]} {e.partitioning} {e.side_tag!r} {e.input_index}"
                for e in node.inputs
            )
            place = f"{node.kind}{inputs}"
            equals[place] += 1
            place = hashlib.sha256(f"{place}#{equals[place]}".encode()).hexdigest()
            places[node.id] = place[:UID_HEX_DIGITS]
            uids[node.id] = node.uid if node.uid is not None else places[node.id]
        return uids

    def nodes_without_uid(self) -> list[StreamNode]:
        """The nodes whose state is found again only as long as the graph stays as it is."""
        return [node for node in self.nodes.values() if node.uid is None]

    def check_uid(self, uid: str, node_id: int) -> None:
        """Raises ValueError if another node has this uid: state is addressed by it."""
        for other in self.nodes.values():
            if other.uid == uid and other.id != node_id:
                raise ValueError(
                    f"uid {uid!r} of operator {self.nodes[node_id].name!r} is already the uid of "
                    f"operator {other.name!r}; state is found again by uid, so each needs its own"
                )

    def validate(self, parallelism: int) -> None:
        """Raises ValueError for what only the whole graph shows; `parallelism` is the job's."""
        if not self.nodes:
            raise ValueError(
                "the job has no operators: create a stream with from_source or from_collection "
                "and give it a sink"
            )
        for node in self.nodes.values():
            if node.uid is not None:
                self.check_uid(node.uid, node.id)
            own = node.parallelism if node.parallelism is not None else parallelism
            for edge in node.inputs:
                sender = self.nodes[edge.source]
                theirs = sender.parallelism if sender.parallelism is not None else parallelism
                if edge.strict and own != theirs:
                    raise ValueError(
                        f"forward() from {sender.name!r} (parallelism {theirs}) to {node.name!r} "
                        f"(parallelism {own}) needs equal parallelism; set both alike or use "
                        "rebalance()"
                    )
            self._check_max_parallelism(node, own)

    @staticmethod
    def _check_max_parallelism(node: StreamNode, parallelism: int) -> None:
        if node.max_parallelism is not None and parallelism > node.max_parallelism:
            raise ValueError(
                f"operator {node.name!r} has parallelism {parallelism} but max parallelism "
                f"{node.max_parallelism}; raise the one or lower the other"
            )
