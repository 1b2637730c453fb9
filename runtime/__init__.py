"""What runs a job: channels, tasks, checkpoints, recovery; the facade that users import.

Everything that a job needs except connectors is importable from here. Names are loaded when they
are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operators.builtin import (
        CollectionSource,
        CollectSink,
        IteratorSource,
        NumberSequenceSource,
        PrintSink,
    )
    from operators.count_trigger import CountTrigger
    from operators.data_stream_sink import DataStreamSink
    from operators.datastream import DataStream
    from operators.functions import (
        AggregateFunction,
        FilterFunction,
        FlatMapFunction,
        Function,
        KeySelector,
        MapFunction,
        ReduceFunction,
    )
    from operators.keyed_state_store import KeyedStateStore
    from operators.keyed_stream import KeyedStream
    from operators.metrics import Counter, Distribution, Gauge, Meter, Metric, MetricGroup
    from operators.output_tag import OutputTag
    from operators.process_functions import (
        KeyedProcessFunction,
        ProcessFunction,
        TimeDomain,
        TimerService,
    )
    from operators.result_buffer import CloseableIterator
    from operators.runtime_context import RuntimeContext
    from operators.sink import Committer, Sink, SinkWriter, SinkWriterContext
    from operators.source import (
        Boundedness,
        InputStatus,
        Source,
        SourceReader,
        SourceReaderContext,
        SplitBatch,
        SplitEnumerator,
        SplitEnumeratorContext,
    )
    from operators.time import Duration, Time
    from operators.triggers import (
        EventTimeTrigger,
        ProcessingTimeTrigger,
        PurgingTrigger,
        Trigger,
        TriggerResult,
    )
    from operators.watermarks import (
        TimestampAssigner,
        WatermarkGenerator,
        WatermarkOutput,
        WatermarkStrategy,
    )
    from operators.window_contents import WindowCount
    from operators.window_functions import ProcessWindowFunction, WindowFunction
    from operators.window_grid import TimeWindow
    from operators.windowed_stream import WindowedStream
    from operators.windows import (
        GlobalWindow,
        SlidingEventTimeWindows,
        SlidingProcessingTimeWindows,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
        WindowAssigner,
    )
    from runtime.client import JobClient, JobFuture
    from runtime.config_views import (
        CheckpointConfig,
        CheckpointingMode,
        ExecutionConfig,
        ExternalizedCheckpointRetention,
    )
    from runtime.configuration import Configuration
    from runtime.environment import StreamExecutionEnvironment
    from runtime.errors import ConfigurationError, JobExecutionError, RecoveryError
    from runtime.job_result import JobExecutionResult, JobStatistics, JobStatus
    from runtime.restart import RestartStrategies
    from runtime.survival_settings import RestartSettings
    from statebackends.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateDescriptor,
        ValueStateDescriptor,
    )
    from statebackends.errors import CorruptCheckpointError, StateError, UnstableKeyError
    from statebackends.hash_map import HashMapStateBackend
    from statebackends.state import (
        AggregatingState,
        ListState,
        MapState,
        ReducingState,
        State,
        ValueState,
    )
    from statebackends.type_info import Types

__all__ = [
    "AggregateFunction",
    "AggregatingState",
    "AggregatingStateDescriptor",
    "Boundedness",
    "CheckpointConfig",
    "CheckpointingMode",
    "CloseableIterator",
    "CollectSink",
    "CollectionSource",
    "Committer",
    "Configuration",
    "ConfigurationError",
    "CorruptCheckpointError",
    "CountTrigger",
    "Counter",
    "DataStream",
    "DataStreamSink",
    "Distribution",
    "Duration",
    "EventTimeTrigger",
    "ExecutionConfig",
    "ExternalizedCheckpointRetention",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "Gauge",
    "GlobalWindow",
    "HashMapStateBackend",
    "InputStatus",
    "IteratorSource",
    "JobClient",
    "JobExecutionError",
    "JobExecutionResult",
    "JobFuture",
    "JobStatistics",
    "JobStatus",
    "KeySelector",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "KeyedStream",
    "ListState",
    "ListStateDescriptor",
    "MapFunction",
    "MapState",
    "MapStateDescriptor",
    "Meter",
    "Metric",
    "MetricGroup",
    "NumberSequenceSource",
    "OutputTag",
    "PrintSink",
    "ProcessFunction",
    "ProcessWindowFunction",
    "ProcessingTimeTrigger",
    "PurgingTrigger",
    "RecoveryError",
    "ReduceFunction",
    "ReducingState",
    "ReducingStateDescriptor",
    "RestartSettings",
    "RestartStrategies",
    "RuntimeContext",
    "Sink",
    "SinkWriter",
    "SinkWriterContext",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "Source",
    "SourceReader",
    "SourceReaderContext",
    "SplitBatch",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "State",
    "StateDescriptor",
    "StateError",
    "StreamExecutionEnvironment",
    "Time",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "TimestampAssigner",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Types",
    "UnstableKeyError",
    "ValueState",
    "ValueStateDescriptor",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
    "WindowAssigner",
    "WindowCount",
    "WindowFunction",
    "WindowedStream",
]

# A line is a module and names that are defined there.
_HOMES = """
operators.builtin: CollectSink CollectionSource IteratorSource NumberSequenceSource PrintSink
operators.count_trigger: CountTrigger
operators.data_stream_sink: DataStreamSink
operators.datastream: DataStream
operators.functions: AggregateFunction FilterFunction FlatMapFunction Function KeySelector
operators.functions: MapFunction ReduceFunction
operators.keyed_state_store: KeyedStateStore
operators.keyed_stream: KeyedStream
operators.metrics: Counter Distribution Gauge Meter Metric MetricGroup
operators.output_tag: OutputTag
operators.process_functions: KeyedProcessFunction ProcessFunction TimeDomain TimerService
operators.result_buffer: CloseableIterator
operators.runtime_context: RuntimeContext
operators.sink: Committer Sink SinkWriter SinkWriterContext
operators.source: Boundedness InputStatus Source SourceReader SourceReaderContext SplitBatch
operators.source: SplitEnumerator SplitEnumeratorContext
operators.time: Duration Time
operators.triggers: EventTimeTrigger ProcessingTimeTrigger PurgingTrigger Trigger TriggerResult
operators.watermarks: TimestampAssigner WatermarkGenerator WatermarkOutput WatermarkStrategy
operators.window_contents: WindowCount
operators.window_functions: ProcessWindowFunction WindowFunction
operators.window_grid: TimeWindow
operators.windowed_stream: WindowedStream
operators.windows: GlobalWindow SlidingEventTimeWindows SlidingProcessingTimeWindows
operators.windows: TumblingEventTimeWindows TumblingProcessingTimeWindows WindowAssigner
runtime.client: JobClient JobFuture
runtime.config_views: CheckpointConfig CheckpointingMode ExecutionConfig
runtime.config_views: ExternalizedCheckpointRetention
runtime.configuration: Configuration
runtime.environment: StreamExecutionEnvironment
runtime.errors: ConfigurationError JobExecutionError RecoveryError
runtime.job_result: JobExecutionResult JobStatistics JobStatus
runtime.restart: RestartStrategies
runtime.survival_settings: RestartSettings
statebackends.descriptors: AggregatingStateDescriptor ListStateDescriptor MapStateDescriptor
statebackends.descriptors: ReducingStateDescriptor StateDescriptor ValueStateDescriptor
statebackends.errors: CorruptCheckpointError StateError UnstableKeyError
statebackends.hash_map: HashMapStateBackend
statebackends.state: AggregatingState ListState MapState ReducingState State ValueState
statebackends.type_info: Types
"""

_ELSEWHERE = """
connectors.datagen: DataGeneratorSource
connectors.kafka: DeliveryGuarantee KafkaOffsetResetStrategy KafkaOffsetsInitializer KafkaRecord
connectors.kafka: KafkaRecordSerializationSchema KafkaSink KafkaSource KafkaTopicPartition
connectors.schemas: ByteArraySchema DeserializationSchema JsonSchema SerializationSchema
connectors.schemas: SimpleStringSchema
"""
"""What is looked for here and is with a connector."""

_NOT_YET = """
AsyncFunction BroadcastProcessFunction CoFlatMapFunction CoMapFunction CoProcessFunction
ConnectedStreams ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger
EmbeddedRocksDBStateBackend EventTimeSessionWindows GlobalWindows KeyedBroadcastProcessFunction
KeyedCoProcessFunction MergingWindowAssigner NeverTrigger ProcessingTimeSessionWindows
StateTtlConfig
"""
"""Names of PyFlink that stand for what is not built yet."""


def _by_name(table: str) -> dict[str, str]:
    """The module of each name, of lines that are a module and names in it."""
    homes = (line.partition(":") for line in table.strip().splitlines())
    return {name: home for home, _, names in homes for name in names.split()}


_HOME_OF = _by_name(_HOMES)


if not TYPE_CHECKING:
    # A type checker that saw it would take any name for one that is there.

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            # As an `AttributeError` its text would be lost to who writes `from runtime import`.
            if name in _NOT_YET.split():
                raise ImportError(f"{name} of PyFlink is not there yet")
            elsewhere = _by_name(_ELSEWHERE).get(name)
            if elsewhere is not None:
                raise ImportError(f"{name} is in {elsewhere}: from {elsewhere} import {name}")
            raise AttributeError(f"module 'runtime' has no name {name!r}")
        _check_siblings()
        found: object = getattr(importlib.import_module(home), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _check_siblings() -> None:
    """Raises ImportError if a module of the user's stands in the place of one of our packages."""
    here = Path(__file__).resolve().parent.parent
    for package in ("operators", "statebackends"):
        found = importlib.import_module(package)
        file = found.__file__
        if file is None or Path(file).resolve().parent.parent != here:
            place = file if file is not None else list(found.__path__)
            raise ImportError(
                f"{place} hides the package {package!r} of riverrun: a job's folder cannot have a "
                f"module named {package!r}; rename it"
            )
