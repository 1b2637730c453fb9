"""The stream that a job's author works with: each method adds one operator to the graph.

Names and argument order are PyFlink's (`pyflink.datastream.DataStream`). Nothing runs here:
`StreamExecutionEnvironment.execute` reads the graph and runs it. Type hints such as
`output_type` are accepted everywhere and only kept for `get_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from operators.advice import ELSEWHERE, KEYED_FIRST, Advising
from operators.builtin import CollectSink, PrintSink
from operators.data_stream_sink import DataStreamSink
from operators.fields import Field
from operators.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
)
from operators.graph import (
    ChainingStrategy,
    GraphOwner,
    Partitioning,
    StreamEdge,
    StreamGraph,
    StreamNode,
)
from operators.output_tag import OutputTag
from operators.process import ProcessOperator
from operators.process_functions import KeyedProcessFunction, ProcessFunction
from operators.result_buffer import CloseableIterator, ResultBuffer
from operators.sink import Sink
from operators.sink_operator import SinkOperator
from operators.source import Source
from operators.source_operator import SourceOperator
from operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from operators.stream_operator import OperatorFactory
from operators.stream_settings import OperatorSettings
from operators.timestamps import TimestampsAndWatermarksOperator
from operators.user_code import check_function, check_object, operator_factory
from operators.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from operators.keyed_stream import KeyedStream

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where a stream's records come from, and how they will reach the next operator."""

    node: int
    partitioning: Partitioning = Partitioning.FORWARD
    key_selector: Callable[[object], Hashable] | None = None
    side_tag: str | None = None
    strict: bool = False
    """`forward()` was asked for by name."""


class DataStream(Advising, OperatorSettings, Generic[T]):
    """Records of type `T` on their way between two operators (PyFlink: `DataStream`).

    The methods that set something (`name`, `uid`, `set_parallelism`, ...) concern the operator
    that puts the records out, and return the stream itself.
    """

    _advice = KEYED_FIRST | ELSEWHERE

    def __init__(self, graph: StreamGraph, outlets: tuple[Outlet, ...]) -> None:
        self._graph = graph
        self._outlets = outlets

    # -- one record at a time -----------------------------------------------------------------

    def map(
        self, func: Callable[[T], R] | MapFunction[T, R], output_type: object = None
    ) -> DataStream[R]:
        """One result for each record."""
        check_function(func, "map", MapFunction, "map", 1)
        return self._add("Map", operator_factory(MapOperator, func), output_type)

    def flat_map(
        self,
        func: Callable[[T], Iterable[R] | None] | FlatMapFunction[T, R],
        output_type: object = None,
    ) -> DataStream[R]:
        """Any number of results for each record: what `func` yields, or the items it returns."""
        check_function(func, "flat_map", FlatMapFunction, "flat_map", 1)
        return self._add("Flat Map", operator_factory(FlatMapOperator, func), output_type)

    def filter(self, func: Callable[[T], object] | FilterFunction[T]) -> DataStream[T]:
        """The records for which `func` is true."""
        check_function(func, "filter", FilterFunction, "filter", 1)
        return self._add("Filter", operator_factory(FilterOperator, func))

    def process(self, func: ProcessFunction[T, R], output_type: object = None) -> DataStream[R]:
        """Any number of results and side outputs for each record; no keyed state, no timers."""
        given: object = func
        if isinstance(given, KeyedProcessFunction):
            raise TypeError(
                f"process() got a KeyedProcessFunction ({type(given).__name__}), whose state and "
                "timers belong to a key: call key_by(...) directly before process"
            )
        check_object(func, "process", ProcessFunction, "process_element")
        return self._add("Process", operator_factory(ProcessOperator, func), output_type)

    def assign_timestamps_and_watermarks(
        self, watermark_strategy: WatermarkStrategy[T]
    ) -> DataStream[T]:
        """Gives records new timestamps and the stream watermarks of its own from here on."""
        check_object(watermark_strategy, "assign_timestamps_and_watermarks", WatermarkStrategy)
        factory = partial(TimestampsAndWatermarksOperator, watermark_strategy)
        return self._add("Timestamps/Watermarks", factory)

    # -- where records go ---------------------------------------------------------------------

    @overload
    def key_by(
        self, key_selector: Callable[[T], K] | KeySelector[T, K], key_type: object = None
    ) -> KeyedStream[K, T]: ...

    @overload
    def key_by(self, key_selector: Field, key_type: object = None) -> KeyedStream[Any, T]: ...

    def key_by(
        self,
        key_selector: Callable[[T], K] | KeySelector[T, K] | Field,
        key_type: object = None,
    ) -> KeyedStream[K, T] | KeyedStream[Any, T]:
        """All records of one key go to one subtask, where keyed state and windows are.

        The key is what a callable or a `KeySelector` gives, or the field of that name or index.
        It must be deterministic and have a stable form: numbers, strings, bytes, tuples,
        enums, dates, frozen dataclasses and the like.
        """
        from operators.keyed_stream import KeyedStream, selector_function

        select = selector_function(key_selector)
        outlets = tuple(
            replace(o, partitioning=Partitioning.KEY_GROUP, key_selector=select, strict=False)
            for o in self._outlets
        )
        return KeyedStream(self._graph, outlets, key_type)

    def union(self, *streams: DataStream[T]) -> DataStream[T]:
        """The records of this and the other streams; the watermark is the least of theirs.

        A stream may occur several times; its records then do too.
        """
        for stream in streams:
            check_object(stream, "union", DataStream)
            if stream._graph is not self._graph:
                raise ValueError(
                    "union() got a stream of another environment; all streams of a job must "
                    "come from the same StreamExecutionEnvironment"
                )
        others = tuple(outlet for stream in streams for outlet in stream._outlets)
        return DataStream(self._graph, self._outlets + others)

    def rebalance(self) -> DataStream[T]:
        """Records go round robin to all subtasks of the next operator."""
        return self._partitioned("rebalance", Partitioning.REBALANCE)

    def shuffle(self) -> DataStream[T]:
        """As `rebalance`: the even spread of Flink's random choice, but repeatable."""
        return self._partitioned("shuffle", Partitioning.REBALANCE)

    def rescale(self) -> DataStream[T]:
        """As `rebalance`: within one machine Flink's local groups of subtasks save nothing."""
        return self._partitioned("rescale", Partitioning.REBALANCE)

    def forward(self) -> DataStream[T]:
        """Records stay on the subtask of the same index; the parallelism must be equal."""
        return self._partitioned("forward", Partitioning.FORWARD)

    def broadcast(self) -> DataStream[T]:
        """Every record goes to every subtask of the next operator."""
        return self._partitioned("broadcast", Partitioning.BROADCAST)

    def get_side_output(self, output_tag: OutputTag[R]) -> DataStream[R]:
        """The records that the operator put out with `output_tag`."""
        check_object(output_tag, "get_side_output", OutputTag)
        node = self._own_node("get_side_output")
        return DataStream(self._graph, (Outlet(node.id, side_tag=output_tag.tag_id),))

    # -- ends ---------------------------------------------------------------------------------

    def sink_to(self, sink: Sink[T]) -> DataStreamSink:
        """Writes the records to `sink`."""
        advice = "print() shows the records, and map() calls a function with each"
        check_object(sink, "sink_to", Sink, advice=advice)
        return self._add_sink(sink, "Sink: Unnamed")

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Prints the records, with the identifier and (if parallel) the subtask before each."""
        if sink_identifier is not None and not isinstance(sink_identifier, str):
            raise TypeError(
                f"print() takes a string to put before each record, not {sink_identifier!r}"
            )
        return self._add_sink(PrintSink(sink_identifier or ""), "Sink: Print to Std. Out")

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T]: ...

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, *, limit: int
    ) -> list[T]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T] | list[T]:
        """Runs the job and iterates over the records of this stream.

        The iterator is a context manager; leaving it early stops the job. With `limit` the job
        is stopped after as many records and the result is a list. After a restart from a
        checkpoint the records since that checkpoint come again.
        """
        if limit is not None and (isinstance(limit, bool) or not limit > 0):
            raise ValueError(f"execute_and_collect() needs a limit above 0, not {limit!r}")
        results: ResultBuffer[T] = ResultBuffer()
        self._add_sink(CollectSink(results), "Sink: Collect")
        buffer = cast(ResultBuffer[object], results)
        stop = self._graph.owner.start_collecting(buffer, job_execution_name)
        iterator = CloseableIterator(results, stop)
        if limit is None:
            return iterator
        with iterator:
            return list(islice(iterator, limit))

    # -- settings -----------------------------------------------------------------------------

    def force_non_parallel(self) -> DataStream[T]:
        """One subtask for ever: parallelism and max parallelism 1."""
        node = self._own_node("force_non_parallel")
        node.parallelism = node.max_parallelism = 1
        return self

    def start_new_chain(self) -> DataStream[T]:
        """The operator begins a task; its successors may share it."""
        self._own_node("start_new_chain").chaining = ChainingStrategy.HEAD
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> DataStream[T]:
        """Accepted for PyFlink's sake, without effect: records never wait for a fuller batch."""
        self._own_node("set_buffer_timeout")
        if timeout_millis < -1:
            raise ValueError(f"a buffer timeout is at least -1 ms, not {timeout_millis}")
        return self

    def get_type(self) -> object:
        """The type hint given for the records, or None."""
        return self._graph.nodes[self._outlets[0].node].output_type

    def get_execution_environment(self) -> GraphOwner:
        """The environment that the stream was made with."""
        return self._graph.owner

    def get_execution_config(self) -> object:
        """The environment's settings of operators."""
        return self._graph.owner.get_config()

    # -- the graph ----------------------------------------------------------------------------

    def _own_node(self, method: str) -> StreamNode:
        outlet = self._outlets[0]
        if self._outlets != (Outlet(outlet.node),):
            raise TypeError(
                f"{method}() concerns an operator, but this stream is a union, a side output or "
                "the result of a partitioning such as key_by() or rebalance(); call it on the "
                "stream of the operator before that"
            )
        return self._graph.nodes[outlet.node]

    def _partitioned(self, method: str, partitioning: Partitioning) -> DataStream[T]:
        strict = method == "forward"
        outlets = tuple(
            Outlet(o.node, partitioning, side_tag=o.side_tag, strict=strict) for o in self._outlets
        )
        return DataStream(self._graph, outlets)

    def _connect(self, node: StreamNode) -> None:
        for outlet in self._outlets:
            edge = StreamEdge(
                source=outlet.node,
                target=node.id,
                partitioning=outlet.partitioning,
                key_selector=outlet.key_selector,
                side_tag=outlet.side_tag,
                strict=outlet.strict,
            )
            self._graph.add_edge(edge)

    def _add(
        self,
        name: str,
        factory: OperatorFactory,
        output_type: object = None,
        *,
        keyed: bool = False,
    ) -> DataStream[Any]:
        """Adds an operator behind this stream; `factory` makes one per subtask and attempt."""
        node = self._graph.add_node(name, factory)
        node.keyed = keyed
        node.output_type = output_type
        self._connect(node)
        return DataStream(self._graph, (Outlet(node.id),))

    def _add_sink(self, sink: Sink[Any], name: str) -> DataStreamSink:
        node = self._graph.add_node(name, partial(SinkOperator, sink), kind="Sink")
        node.is_sink = True
        self._connect(node)
        return DataStreamSink(self._graph, node)


def source_stream(
    graph: StreamGraph,
    source: Source[T],
    watermark_strategy: WatermarkStrategy[Any],
    source_name: str,
    type_info: object = None,
) -> DataStream[T]:
    """Adds a source to the graph; what `StreamExecutionEnvironment.from_source` is made of."""
    advice = "from_collection() reads a list or whatever else can be iterated over"
    check_object(source, "from_source", Source, advice=advice)
    check_object(watermark_strategy, "from_source", WatermarkStrategy)
    factory = partial(SourceOperator, source, watermark_strategy)
    node = graph.add_node(f"Source: {source_name}", factory, kind="Source")
    node.source = source
    node.output_type = type_info
    return DataStream(graph, (Outlet(node.id),))
