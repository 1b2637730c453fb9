"""The execution plan: what shares a task, how wide it is, and what cannot run."""

from __future__ import annotations

from typing import Any

import pytest

from operators.builtin import CollectSink
from operators.datastream import DataStream
from operators.graph import ChainingStrategy, Partitioning, StreamGraph
from operators.output_tag import OutputTag
from runtime.errors import ConfigurationError
from runtime.plan import ExecutionPlan, Vertex, build_plan
from tests.operators.graph_owner import graph, source


def plan(of: StreamGraph, parallelism: int = 1, **options: Any) -> ExecutionPlan:
    return build_plan(of, parallelism=parallelism, max_parallelism=8, **options)


def names(of: ExecutionPlan) -> list[str]:
    return [vertex.name for vertex in of.vertices]


def numbered(stream: DataStream[Any], name: str) -> DataStream[Any]:
    return stream.map(lambda value: value).name(name)


def to_sink(stream: DataStream[Any], name: str = "sink") -> Any:
    return stream.sink_to(CollectSink()).name(name)


def straight(*, names: str = "abc") -> tuple[StreamGraph, list[DataStream[Any]]]:
    """Source -> a -> b -> c -> sink."""
    made = graph()
    streams = [source(made, name="numbers")]
    for name in names:
        streams.append(numbered(streams[-1], name))
    to_sink(streams[-1])
    return made, streams


def heads(of: ExecutionPlan) -> list[str]:
    return [vertex.operators[0].name for vertex in of.vertices]


# -- what shares a task ---------------------------------------------------------------------


def test_a_straight_job_is_one_task() -> None:
    """From the source to the sink, each operator the receiver of the one before."""
    made, _ = straight()
    (vertex,) = plan(made).vertices
    assert vertex.name == " -> ".join(each.name for each in vertex.operators)
    assert [each.name for each in vertex.operators][1:] == ["a", "b", "c", "sink"]
    assert [(link.sender, link.receiver) for link in vertex.links] == [
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 5),
    ]
    assert vertex.inputs == []


def test_without_chaining_each_operator_has_a_task() -> None:
    """Joined by forward edges."""
    made, _ = straight()
    built = plan(made, chaining=False)
    assert [len(vertex.operators) for vertex in built.vertices] == [1] * 5
    assert [edge.partitioning for v in built.vertices for edge in v.inputs] == [
        Partitioning.FORWARD
    ] * 4


def test_a_change_of_parallelism_breaks_the_chain() -> None:
    """Forward becomes rebalance on both sides of it."""
    made, streams = straight()
    streams[2].set_parallelism(3)  # type: ignore[attr-defined]  # an operator's stream
    built = plan(made, parallelism=2)
    assert [vertex.parallelism for vertex in built.vertices] == [2, 3, 2]
    assert heads(built)[1:] == ["b", "c"]
    assert [v.inputs[0].partitioning for v in built.vertices[1:]] == [Partitioning.REBALANCE] * 2


def test_a_change_of_max_parallelism_breaks_the_chain() -> None:
    """Its key groups are others; the edge stays forward."""
    made, streams = straight()
    streams[2].set_max_parallelism(4)  # type: ignore[attr-defined]  # an operator's stream
    built = plan(made)
    assert heads(built)[1:] == ["b", "c"]
    assert built.vertices[1].inputs[0].partitioning is Partitioning.FORWARD


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (ChainingStrategy.ALWAYS, []),
        (ChainingStrategy.HEAD, ["b"]),
        (ChainingStrategy.NEVER, ["b", "c"]),
    ],
)
def test_an_operators_strategy_is_kept(strategy: ChainingStrategy, expected: list[str]) -> None:
    """HEAD joins nobody before it, NEVER nobody at all."""
    made, _ = straight()
    made.nodes[3].chaining = strategy
    assert heads(plan(made))[1:] == expected


def test_a_head_may_have_what_follows_it() -> None:
    """HEAD stands for the beginning of a chain only."""
    made, _ = straight()
    made.nodes[3].chaining = ChainingStrategy.HEAD
    assert names(plan(made))[1] == "b -> c -> sink"


@pytest.mark.parametrize("how", ["rebalance", "broadcast"])
def test_an_edge_that_spreads_is_never_chained(how: str) -> None:
    """Also at parallelism 1: the partitioner was asked for."""
    made = graph()
    stream: Any = source(made, name="numbers")
    to_sink(numbered(getattr(stream, how)(), "spread"))
    built = plan(made)
    assert heads(built)[1:] == ["spread"]
    assert built.vertices[1].inputs[0].partitioning == how


def test_a_keyed_edge_is_never_chained() -> None:
    """Its operator has keyed state and the selector is on the edge."""
    made = graph()
    keyed: Any = source(made, name="numbers").key_by(lambda value: value % 3)
    to_sink(keyed.reduce(lambda a, b: a + b).name("sum"))
    built = plan(made)
    (edge,) = built.vertices[1].inputs
    assert edge.partitioning is Partitioning.KEY_GROUP
    assert edge.key_selector is not None
    assert edge.key_selector(7) == 1
    assert built.vertices[1].head.keyed


def test_a_union_is_never_chained() -> None:
    """It has several inputs, each an edge of its own."""
    made = graph()
    left, right = source(made, name="left"), source(made, name="right")
    to_sink(numbered(left.union(right), "both"))
    built = plan(made)
    assert len(built.vertices) == 3
    assert [edge.source_vertex for edge in built.vertices[2].inputs] == [1, 2]


def test_a_stream_united_with_itself_comes_twice() -> None:
    """Two edges between the same two operators."""
    made = graph()
    stream = source(made, name="numbers")
    to_sink(numbered(stream.union(stream), "twice"))
    built = plan(made)
    assert [(e.source_node, e.target_vertex) for e in built.vertices[1].inputs] == [(1, 2), (1, 2)]


def test_a_fan_out_chains_every_branch() -> None:
    """All receivers that may share the task do."""
    made = graph()
    stream = source(made, name="numbers")
    for name in "ab":
        to_sink(numbered(stream, name), f"sink {name}")
    (vertex,) = plan(made).vertices
    assert [(link.sender, link.receiver) for link in vertex.links] == [
        (1, 2),
        (2, 3),
        (1, 4),
        (4, 5),
    ]


def test_a_side_output_is_chained_by_its_tag() -> None:
    """The link says which output it is of."""
    made = graph()
    late = OutputTag("late")
    stream: Any = numbered(source(made, name="numbers"), "split")
    to_sink(stream.get_side_output(late))
    (vertex,) = plan(made).vertices
    assert [link.side_tag for link in vertex.links] == [None, "late"]


def test_a_side_output_between_tasks_keeps_its_tag() -> None:
    """The edge says which output it is of."""
    made = graph()
    stream: Any = numbered(source(made, name="numbers"), "split")
    to_sink(stream.get_side_output(OutputTag("late")))
    built = plan(made, chaining=False)
    assert built.vertices[2].inputs[0].side_tag == "late"
    assert "side output 'late'" in built.describe()


# -- what is resolved ---------------------------------------------------------------------


def test_senders_come_before_receivers() -> None:
    """Vertices and the operators in them are in topological order, numbered from 1."""
    made = graph()
    left, right = source(made, name="left"), source(made, name="right")
    to_sink(numbered(numbered(left, "a").union(numbered(right, "b")), "c"))
    built = plan(made, chaining=False)
    assert [vertex.id for vertex in built.vertices] == [*range(1, len(built.vertices) + 1)]
    for vertex in built.vertices:
        assert all(edge.source_vertex < vertex.id for edge in vertex.inputs)


def test_the_edges_of_a_vertex_are_found_from_both_ends() -> None:
    """What enters a vertex leaves another."""
    made = graph()
    stream = source(made, name="numbers")
    for name in "ab":
        to_sink(numbered(stream.rebalance(), name))
    built = plan(made)
    leaving = built.outputs_of(built.vertices[0])
    assert [edge.target_vertex for edge in leaving] == [2, 3]
    assert [vertex.inputs[0] for vertex in built.vertices[1:]] == leaving


def test_what_the_graph_leaves_open_is_the_jobs() -> None:
    """Parallelism and max parallelism, unless the operator has its own."""
    made, streams = straight()
    streams[1].set_parallelism(3)  # type: ignore[attr-defined]  # an operator's stream
    streams[2].set_max_parallelism(5)  # type: ignore[attr-defined]  # an operator's stream
    found = {
        each.name: (each.parallelism, each.max_parallelism) for each in plan(made, 2).operators
    }
    assert (found["a"], found["b"], found["c"]) == ((3, 8), (2, 5), (2, 8))


def test_uids_are_the_users_or_made_from_the_graph() -> None:
    """No two operators share one."""
    made, streams = straight()
    streams[1].uid("mine")  # type: ignore[attr-defined]  # an operator's stream
    uids = {each.name: each.uid for each in plan(made).operators}
    assert uids["a"] == "mine"
    assert len(set(uids.values())) == len(uids)


def test_the_plan_can_be_read() -> None:
    """Every operator with its uid, every edge with its partitioning."""
    made, streams = straight()
    streams[2].set_parallelism(3)  # type: ignore[attr-defined]  # an operator's stream
    built = plan(made)
    text = built.describe()
    for operator in built.operators:
        assert f"{operator.name}: uid {operator.uid}" in text
    assert "<- [1] rebalance" in text
    assert "(parallelism 3)" in text


# -- what cannot run ---------------------------------------------------------------------


def test_a_job_without_sink_is_refused() -> None:
    """The error names what ends a stream."""
    made = graph()
    numbered(source(made, name="numbers"), "a")
    with pytest.raises(ConfigurationError, match=r"no sink.*print\(\)"):
        plan(made)


def test_an_empty_job_is_refused() -> None:
    """The error names what begins a stream."""
    with pytest.raises(ConfigurationError, match="no operators"):
        plan(graph())


@pytest.mark.parametrize("parallelism", [0, 9])
def test_a_parallelism_out_of_its_bounds_is_refused(parallelism: int) -> None:
    """The error names operator, value and bound."""
    made, _ = straight()
    made.nodes[3].parallelism = parallelism
    with pytest.raises(ConfigurationError, match=rf"'b'.*parallelism {parallelism}.*1\.\.8"):
        plan(made)


@pytest.mark.parametrize("max_parallelism", [0, 32769])
def test_a_max_parallelism_out_of_its_bounds_is_refused(max_parallelism: int) -> None:
    """The error names operator, value and bound."""
    made, _ = straight()
    made.nodes[3].parallelism = 1 if max_parallelism else None
    made.nodes[3].max_parallelism = max_parallelism
    with pytest.raises(ConfigurationError, match=rf"'b'.*max parallelism {max_parallelism}"):
        plan(made)


def test_a_strict_forward_edge_needs_equal_parallelism() -> None:
    """`forward()` was asked for, so a rebalance instead would be a surprise."""
    made = graph()
    stream: Any = source(made, name="numbers")
    to_sink(numbered(stream.forward(), "a").set_parallelism(2))  # type: ignore[attr-defined]  # as above
    with pytest.raises(ConfigurationError, match="forward"):
        plan(made)


def test_one_uid_for_two_operators_is_refused() -> None:
    """State is found again by it."""
    made, _ = straight()
    made.nodes[2].uid = made.nodes[3].uid = "same"
    with pytest.raises(ConfigurationError, match="same"):
        plan(made)


def test_a_vertex_is_named_by_its_operators() -> None:
    """In the order in which records pass them."""
    made, _ = straight(names="xy")
    vertex: Vertex = plan(made).vertices[0]
    assert vertex.name.endswith("x -> y -> sink")
    assert vertex.head.source is not None
