"""Turns what is to be tested into a plan: input, the operators, a recording end."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from operators.data_stream_sink import DataStreamSink
from operators.datastream import DataStream, Outlet, source_stream
from operators.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    MapFunction,
    ReduceFunction,
)
from operators.graph import ChainingStrategy, StreamGraph
from operators.process_functions import KeyedProcessFunction, ProcessFunction
from operators.result_buffer import ResultBuffer
from operators.source import Source
from operators.stream_operator import OperatorFactory
from operators.watermarks import WatermarkStrategy
from runtime.plan import ExecutionPlan, build_plan
from runtime.testing.input import HarnessInput
from runtime.testing.outputs import OutputRecorder, RecordingOperator

INPUT_UID = "harness-input"
OUTPUT_UID = "harness-output"

Build = Callable[[DataStream[Any]], DataStream[Any] | DataStreamSink]
"""Adds the operators under test to a stream and gives what comes out of them."""


class _Owner:
    """The owner of a graph that is only ever run by a harness."""

    def get_config(self) -> object:
        """Raises `TypeError`: the harness has the settings."""
        raise TypeError("a stream under test has no environment: its harness has the settings")

    def start_collecting(
        self, results: ResultBuffer[object], job_name: str | None
    ) -> Callable[[], None]:
        """Raises `TypeError`: the harness runs the stream."""
        raise TypeError("a stream under test is run by its harness: return it, do not execute it")


def plan_of(
    build: Build,
    recorder: OutputRecorder,
    *,
    parallelism: int,
    max_parallelism: int,
    chaining: bool,
) -> ExecutionPlan:
    """The plan of the operators that `build` adds; what comes out of them goes to `recorder`.

    Raises:
        TypeError: `build` does not return a stream of its own.
        ConfigurationError: the operators make no graph that could run.
    """
    graph = StreamGraph(_Owner())
    source = graph.add_node("Input", HarnessInput, kind="Source")
    source.uid = INPUT_UID
    source.parallelism = 1
    source.chaining = ChainingStrategy.NEVER
    result = build(DataStream(graph, (Outlet(source.id),)))
    if isinstance(result, DataStream):
        _record(graph, result, recorder)
    elif not isinstance(result, DataStreamSink):
        raise TypeError(
            "the function that builds the operators under test must return their stream (or its "
            f"sink), not {type(result).__name__}"
        )
    return build_plan(
        graph, parallelism=parallelism, max_parallelism=max_parallelism, chaining=chaining
    )


def _record(graph: StreamGraph, stream: DataStream[Any], recorder: OutputRecorder) -> None:
    senders = [graph.nodes[outlet.node] for outlet in stream._outlets]
    stream._add("Output", partial(RecordingOperator, recorder))
    node = graph.nodes[len(graph.nodes)]
    node.uid = OUTPUT_UID
    node.is_sink = True
    # As many subtasks as its sender has, so that it shares the sender's tasks.
    node.parallelism = senders[0].parallelism
    node.max_parallelism = senders[0].max_parallelism


def build_operator(
    factory: OperatorFactory, key_selector: Callable[[Any], Hashable] | None, name: str
) -> Build:
    """A stream of one operator, with keyed state if there is a key selector."""

    def build(stream: DataStream[Any]) -> DataStream[Any]:
        keyed = key_selector is not None
        upstream = stream.key_by(key_selector) if key_selector is not None else stream
        return upstream._add(name, factory, keyed=keyed)

    return build


def build_source(
    source: Source[Any], strategy: WatermarkStrategy[Any], build: Build | None
) -> Build:
    """A source and what is built behind it; nothing reads the input of the harness."""

    def build_all(stream: DataStream[Any]) -> DataStream[Any] | DataStreamSink:
        records = source_stream(stream._graph, source, strategy, "Source")
        return records if build is None else build(records)

    return build_all


def build_function(function: object, key_selector: Callable[[Any], Hashable] | None) -> Build:
    """A stream of the operator that fits a user function.

    Raises:
        TypeError: the function needs a key selector, or is none that one operator could run.
    """

    def build(stream: DataStream[Any]) -> DataStream[Any]:
        if key_selector is not None:
            keyed = stream.key_by(key_selector)
            if isinstance(function, KeyedProcessFunction):
                return keyed.process(function)
            if isinstance(function, ReduceFunction):
                return keyed.reduce(function)
            stream = keyed
        if isinstance(function, MapFunction):
            return stream.map(function)
        if isinstance(function, FlatMapFunction):
            return stream.flat_map(function)
        if isinstance(function, FilterFunction):
            return stream.filter(function)
        assert isinstance(function, ProcessFunction)
        return stream.process(function)

    if not isinstance(function, Function):
        raise TypeError(
            f"not a function object: {function!r:.80}; use OperatorHarness.of(lambda stream: ...)"
        )
    if isinstance(function, KeyedProcessFunction | ReduceFunction) and key_selector is None:
        raise TypeError(f"a {type(function).__name__} runs on a keyed stream: give key_selector")
    kinds = (KeyedProcessFunction, ReduceFunction, MapFunction, FlatMapFunction, FilterFunction)
    if not isinstance(function, (*kinds, ProcessFunction)):
        raise TypeError(
            f"which operator is to run a {type(function).__name__} is not known: use "
            "OperatorHarness.of(lambda stream: ...)"
        )
    return build
