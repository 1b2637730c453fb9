"""Streams: the nodes and edges that their methods add."""

from __future__ import annotations

import pytest

from operators.builtin import CollectSink
from operators.functions import KeySelector
from operators.graph import ChainingStrategy, Partitioning
from operators.output_tag import OutputTag
from operators.process_functions import KeyedProcessFunction, ProcessFunction
from operators.watermarks import WatermarkStrategy
from operators.windows import TumblingEventTimeWindows
from tests.operators.graph_owner import Owner, graph, last, nodes, source


class Pass(ProcessFunction[object, object]):
    def process_element(self, value: object, ctx: ProcessFunction.Context) -> list[object]:
        return [value]


class PassKeyed(KeyedProcessFunction[object, object, object]):
    def process_element(self, value: object, ctx: KeyedProcessFunction.Context) -> list[object]:
        return [value]


class First(KeySelector[str, str]):
    def get_key(self, value: str) -> str:
        return value[0]


def test_each_method_adds_one_operator() -> None:
    """Names are those of Flink's plans."""
    of = graph()
    strategy = WatermarkStrategy[object].for_monotonous_timestamps()
    stream = source(of).map(str).flat_map(list).filter(bool).process(Pass())
    stream.assign_timestamps_and_watermarks(strategy).print()
    assert nodes(of) == [
        "Source: numbers",
        "Map",
        "Flat Map",
        "Filter",
        "Process",
        "Timestamps/Watermarks",
        "Sink: Print to Std. Out",
    ]
    edges = [edge for node in of.nodes.values() for edge in node.inputs]
    assert [(edge.source, edge.target) for edge in edges] == [(n, n + 1) for n in range(1, 7)]
    assert {edge.partitioning for edge in edges} == {Partitioning.FORWARD}
    assert [node.is_sink for node in of.nodes.values()] == [False] * 6 + [True]
    assert of.nodes[1].source is not None


def test_keyed_operators_have_keyed_inputs() -> None:
    """Process, reduce, aggregates and windows are keyed; a plain map behind key_by is not."""
    of = graph()
    keyed = source(of).key_by(lambda value: value % 2)
    keyed.process(PassKeyed())
    keyed.reduce(max)
    keyed.sum()
    keyed.window(TumblingEventTimeWindows.of(10)).count()
    keyed.map(str)
    assert [node.keyed for node in of.nodes.values()] == [False, True, True, True, True, False]
    for node in list(of.nodes.values())[1:]:
        (edge,) = node.inputs
        assert edge.partitioning is Partitioning.KEY_GROUP
        assert edge.key_selector is not None
        assert edge.key_selector(7) == 1


@pytest.mark.parametrize(
    ("selector", "record", "key"),
    [
        (lambda value: value[1], ("a", 2), 2),
        (First(), "abc", "a"),
        ("page", {"page": "home"}, "home"),
        (0, ("x", 1), "x"),
    ],
)
def test_a_key_is_selected_by_callable_object_or_field(
    selector: object, record: object, key: object
) -> None:
    """All four ways give the key of a record."""
    of = graph()
    source(of).key_by(selector).reduce(max)  # type: ignore[call-overload]  # one of each kind
    select = last(of).inputs[0].key_selector
    assert select is not None
    assert select(record) == key


@pytest.mark.parametrize(
    ("method", "partitioning"),
    [
        ("rebalance", Partitioning.REBALANCE),
        ("shuffle", Partitioning.REBALANCE),
        ("rescale", Partitioning.REBALANCE),
        ("broadcast", Partitioning.BROADCAST),
        ("forward", Partitioning.FORWARD),
    ],
)
def test_a_partitioning_is_that_of_the_next_edge(method: str, partitioning: Partitioning) -> None:
    """It adds no operator."""
    of = graph()
    getattr(source(of), method)().map(str)
    (edge,) = last(of).inputs
    assert edge.partitioning is partitioning
    assert edge.strict is (method == "forward")
    assert len(of.nodes) == 2


def test_the_last_partitioning_counts() -> None:
    """A key replaces what was there before."""
    of = graph()
    source(of).forward().rebalance().key_by(lambda value: value).map(str)
    (edge,) = last(of).inputs
    assert (edge.partitioning, edge.strict) == (Partitioning.KEY_GROUP, False)


def test_a_union_has_an_edge_per_stream() -> None:
    """Also for a stream that occurs twice; the order is that of the arguments."""
    of = graph()
    one, two = source(of), source(of, name="others")
    one.union(two.rebalance(), one).map(str)
    edges = last(of).inputs
    assert [edge.source for edge in edges] == [1, 2, 1]
    assert edges[1].partitioning is Partitioning.REBALANCE


def test_streams_of_two_environments_cannot_be_united() -> None:
    """They belong to different jobs."""
    with pytest.raises(ValueError, match="another environment"):
        source(graph()).union(source(graph()))


def test_a_side_output_is_an_edge_with_its_tag() -> None:
    """The tag is known by its id."""
    of = graph()
    late: OutputTag[object] = OutputTag("late")
    source(of).process(Pass()).get_side_output(late).print()
    (edge,) = last(of).inputs
    assert (edge.source, edge.side_tag) == (2, "late")


def test_settings_reach_the_operator_of_the_stream() -> None:
    """Each returns the stream, so that they can be chained."""
    of = graph()
    stream = source(of).map(str)
    settings = stream.name("text").uid("t").set_parallelism(2).set_max_parallelism(8)
    assert settings.set_description("numbers as text").set_buffer_timeout(5) is stream
    node = last(of)
    assert (node.name, node.uid, node.parallelism, node.max_parallelism) == ("text", "t", 2, 8)
    assert (node.description, stream.get_name()) == ("numbers as text", "text")


def test_chaining_is_set_per_operator() -> None:
    """A head begins a task, a disabled one is alone in it."""
    of = graph()
    source(of).map(str).start_new_chain().map(str).disable_chaining().print().disable_chaining()
    assert [node.chaining for node in of.nodes.values()] == [
        ChainingStrategy.ALWAYS,
        ChainingStrategy.HEAD,
        ChainingStrategy.NEVER,
        ChainingStrategy.NEVER,
    ]


def test_a_non_parallel_operator_stays_so() -> None:
    """Its parallelism cannot be raised any more."""
    stream = source(graph()).force_non_parallel()
    with pytest.raises(ValueError, match="from 1 to 1, not 2"):
        stream.set_parallelism(2)


@pytest.mark.parametrize("parallelism", [0, -1, 40_000])
def test_a_parallelism_out_of_range_is_refused(parallelism: int) -> None:
    """Names the operator and the range."""
    with pytest.raises(ValueError, match=r"'Source: numbers' must be from 1 to 32768"):
        source(graph()).set_parallelism(parallelism)


def test_a_max_parallelism_below_the_parallelism_is_refused() -> None:
    """The message says what to lower."""
    with pytest.raises(ValueError, match=r"cannot be 2: its parallelism is 3"):
        source(graph()).set_parallelism(3).set_max_parallelism(2)


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_name_or_uid_is_refused(text: str) -> None:
    """An operator must be told from others."""
    with pytest.raises(ValueError, match="must not be empty"):
        source(graph()).name(text)
    with pytest.raises(ValueError, match="must not be empty"):
        source(graph()).uid(text)


def test_a_sink_has_settings_of_its_own() -> None:
    """They concern the sink's node."""
    of = graph()
    source(of).sink_to(CollectSink()).name("results").uid("out").set_parallelism(1)
    node = last(of)
    assert (node.name, node.uid, node.parallelism, node.kind) == ("results", "out", 1, "Sink")


def test_collecting_iterates_over_what_the_job_puts_out() -> None:
    """The job is started under the given name; at the end it is stopped."""
    owner = Owner([1, 2, 3])
    of = graph(owner)
    with source(of).execute_and_collect("numbers job") as results:
        assert list(results) == [1, 2, 3]
    assert owner.started == ["numbers job"]
    assert owner.stopped == 1
    assert last(of).is_sink


def test_collecting_with_a_limit_gives_a_list() -> None:
    """The job is stopped after as many results."""
    owner = Owner([1, 2, 3])
    assert source(graph(owner)).execute_and_collect(limit=2) == [1, 2]
    assert owner.stopped == 1
    with pytest.raises(ValueError, match="limit above 0"):
        source(graph(owner)).execute_and_collect(limit=0)


def test_each_subtask_gets_a_copy_of_the_function() -> None:
    """What a function keeps in attributes is its subtask's own."""
    of = graph()
    function = Pass()
    source(of).process(function)
    node = last(of)
    operators = {node.operator(), node.operator()}
    functions = {id(value) for one in operators for value in vars(one).values() if value}
    assert len(operators) == 2
    assert id(function) not in functions


def test_the_environment_is_known_to_its_streams() -> None:
    """Whatever it is."""
    owner = Owner()
    assert source(graph(owner)).get_execution_environment() is owner
    assert source(graph(owner)).get_execution_config() == "settings"


def test_a_type_hint_is_kept() -> None:
    """It has no other effect."""
    assert source(graph()).map(str, "text").get_type() == "text"
