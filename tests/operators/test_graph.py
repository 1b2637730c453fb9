"""The graph as data: uids, edges, checks of the whole."""

from __future__ import annotations

import pytest

from operators.graph import Partitioning, StreamEdge, StreamGraph
from tests.operators.graph_owner import graph, last, source


def job(of: StreamGraph, *, names: bool = False) -> None:
    """Two maps of one source, a sink each; with names or without."""
    numbers = source(of)
    for index in range(2):
        stream = numbers.map(str)
        if names:
            stream.name(f"text {index}").set_parallelism(3)
        stream.print()


def uids(of: StreamGraph) -> list[str]:
    return list(of.uids().values())


def test_the_same_graph_has_the_same_uids() -> None:
    """State is found again as long as the job stays as it is."""
    one, other = graph(), graph()
    job(one)
    job(other)
    assert uids(one) == uids(other)
    assert len(set(uids(one))) == 5


def test_names_and_parallelism_do_not_change_uids() -> None:
    """A job may be renamed and rescaled and still continue."""
    one, other = graph(), graph()
    job(one)
    job(other, names=True)
    assert uids(one) == uids(other)


def test_what_comes_later_does_not_change_uids() -> None:
    """An operator added behind keeps the state of those before it."""
    one, other = graph(), graph()
    job(one)
    job(other)
    source(other, name="others").key_by(lambda value: value).reduce(max).print()
    assert uids(other)[: len(uids(one))] == uids(one)


def test_an_operator_before_changes_the_uids_behind() -> None:
    """The place in the graph is another one, and the source's is not."""
    one, other = graph(), graph()
    source(one).map(str).print()
    source(other).filter(bool).map(str).print()
    assert uids(one)[0] == uids(other)[0]
    assert set(uids(one)[1:]).isdisjoint(uids(other)[1:])


def test_a_uid_of_the_user_replaces_the_generated_one() -> None:
    """And only that of its own operator."""
    one, other = graph(), graph()
    source(one).map(str).print()
    source(other).map(str).uid("text").print()
    assert other.uids()[2] == "text"
    assert [uids(one)[0], uids(one)[2]] == [uids(other)[0], uids(other)[2]]
    assert [node.name for node in other.nodes_without_uid()] == [
        "Source: numbers",
        "Sink: Print to Std. Out",
    ]


def test_a_uid_that_is_taken_is_refused() -> None:
    """The message names both operators."""
    numbers = source(graph()).uid("numbers")
    with pytest.raises(ValueError, match=r"'numbers' of operator 'Map'.*'Source: numbers'"):
        numbers.map(str).uid("numbers")


def test_an_operator_may_be_given_its_uid_again() -> None:
    """That is no conflict."""
    source(graph()).uid("numbers").uid("numbers")


def test_an_empty_job_is_refused() -> None:
    """The message says what is missing."""
    with pytest.raises(ValueError, match="no operators"):
        graph().validate(1)


def test_forward_between_different_parallelisms_is_refused() -> None:
    """Only the whole graph shows it, since the parallelism may be set later."""
    of = graph()
    numbers = source(of).set_parallelism(2)
    stream = numbers.forward().map(str)
    of.validate(2)
    with pytest.raises(ValueError, match=r"parallelism 2.*'Map' \(parallelism 4\).*rebalance"):
        of.validate(4)
    stream.set_parallelism(2)
    of.validate(4)


def test_a_job_wider_than_an_operators_max_parallelism_is_refused() -> None:
    """There would be subtasks without key groups."""
    of = graph()
    source(of).map(str).set_max_parallelism(4)
    of.validate(4)
    with pytest.raises(ValueError, match="parallelism 5 but max parallelism 4"):
        of.validate(5)


def test_the_edges_of_a_node_are_found() -> None:
    """In the order in which their targets were made."""
    of = graph()
    job(of)
    assert [(edge.source, edge.target) for edge in of.outputs_of(1)] == [(1, 2), (1, 4)]


def test_an_edge_from_nowhere_is_refused() -> None:
    """A node must be in the graph before its edges."""
    of = graph()
    source(of)
    with pytest.raises(ValueError, match="unknown node 7"):
        of.add_edge(StreamEdge(7, last(of).id, Partitioning.FORWARD))
