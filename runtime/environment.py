"""Where a job begins and where it is run: the environment that a job's author works with."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar, cast

from operators.advice import Advising
from operators.builtin import NumberSequenceSource, collection_source
from operators.datastream import DataStream, source_stream
from operators.graph import StreamGraph
from operators.time import TimeLike
from operators.watermarks import WatermarkStrategy
from runtime.config import JobConfig
from runtime.config_options import options_of
from runtime.config_views import CheckpointConfig, CheckpointingMode, ExecutionConfig
from runtime.configuration import Configuration
from runtime.errors import ConfigurationError
from runtime.execution_plan import execution_plan_json
from runtime.failure_report import install_failure_hook
from runtime.job_log import configure_unless_done
from runtime.launch import current_launch, default_job_name
from runtime.plan import ExecutionPlan, build_plan
from runtime.setting_layers import SettingLayers
from runtime.survival_settings import RestartSettings

if TYPE_CHECKING:
    from operators.result_buffer import ResultBuffer
    from operators.source import Source
    from runtime.client import JobClient
    from runtime.job_result import JobExecutionResult

T = TypeVar("T")

logger = logging.getLogger(__name__)


class StreamExecutionEnvironment(Advising):
    """Makes streams from sources, holds the settings, runs the job (PyFlink's class).

    What the command line says outranks what is set here, and is what the getters give.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._layers = SettingLayers(current_launch().overrides)
        self._config = ExecutionConfig(self._layers)
        self._checkpoint_config = CheckpointConfig(self._layers)
        self._graph = StreamGraph(self)
        self._executed: set[int] = set()
        install_failure_hook()
        if configuration is not None:
            self.configure(configuration)

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """A new environment; raises ConfigurationError for unknown keys or impossible values."""
        return StreamExecutionEnvironment(configuration)

    # -- settings -----------------------------------------------------------------------------

    def get_config(self) -> ExecutionConfig:
        """The settings of operators; changes count until `execute`."""
        return self._config

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints; changes count until `execute`."""
        return self._checkpoint_config

    def configure(self, configuration: Configuration) -> None:
        """Sets each key of the configuration; raises ConfigurationError as `--set` does."""
        if not isinstance(configuration, Configuration):
            raise TypeError(
                "configure() takes a Configuration, Configuration({'key': 'value'}) for example, "
                f"not {type(configuration).__name__} {configuration!r:.80}"
            )
        for key, value in configuration.to_dict().items():
            self._layers.set(key, value)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """How many subtasks an operator has that does not say itself."""
        self._config.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The parallelism in force."""
        return self._config.get_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups, fixed when the job first runs; at most 32768."""
        self._config.set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups in force."""
        return self._config.get_max_parallelism()

    def set_buffer_timeout(self, timeout_millis: TimeLike) -> StreamExecutionEnvironment:
        """Taken for the sake of jobs written for Flink, without effect: batches never wait."""
        self._layers.set("execution.buffer-timeout.interval", timeout_millis, "set_buffer_timeout")
        return self

    def get_buffer_timeout(self) -> int:
        """What `set_buffer_timeout` was given."""
        return self._layers.integer("execution.buffer-timeout.interval")

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Each operator gets a task of its own."""
        self._layers.set("pipeline.operator-chaining.enabled", False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators may share a task."""
        return bool(self._layers.get("pipeline.operator-chaining.enabled"))

    def enable_checkpointing(
        self, interval: TimeLike, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Takes a checkpoint each `interval` (an integer is milliseconds), exactly-once."""
        self._layers.set("execution.checkpointing.interval", interval, "enable_checkpointing")
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """The interval in milliseconds; -1 when checkpoints are off."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE (PyFlink's newer name of `get_checkpointing_mode`)."""
        return self._checkpoint_config.get_checkpointing_mode()

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartSettings
    ) -> StreamExecutionEnvironment:
        """What happens when the job fails; one of `RestartStrategies`."""
        if not isinstance(restart_strategy_configuration, RestartSettings):
            raise TypeError(
                "set_restart_strategy() takes what RestartStrategies gives, "
                "RestartStrategies.no_restart() for example, "
                f"not {restart_strategy_configuration!r:.80}"
            )
        for name, one in options_of(RestartSettings).items():
            value = getattr(restart_strategy_configuration, name)
            self._layers.set(one.key, value, "set_restart_strategy")
        return self

    # -- sources ------------------------------------------------------------------------------

    def from_source(
        self,
        source: Source[T],
        watermark_strategy: WatermarkStrategy[T],
        source_name: str,
        type_info: object = None,
    ) -> DataStream[T]:
        """The records of a source, with timestamps and watermarks by the strategy."""
        return source_stream(self._graph, source, watermark_strategy, source_name, type_info)

    def from_collection(self, collection: Iterable[T], type_info: object = None) -> DataStream[T]:
        """The items of a sequence (replayable) or of an iterator (consumed lazily, once)."""
        return self._without_watermarks(
            collection_source(collection), "Collection Source", type_info
        )

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """The integers from `start` to `end`, both included (Flink: `fromSequence`)."""
        return self._without_watermarks(
            cast("Source[int]", NumberSequenceSource(start, end)), "Sequence Source", None
        )

    def _without_watermarks(self, source: Source[T], name: str, type_info: object) -> DataStream[T]:
        return self.from_source(source, WatermarkStrategy.no_watermarks(), name, type_info)

    # -- running ------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Runs the job and waits for its end.

        Raises ConfigurationError before anything runs, JobExecutionError if the job fails,
        RuntimeError within a running event loop, and SystemExit (130 or 143) after a clean stop
        by SIGINT or SIGTERM.
        """
        if _in_event_loop():
            raise RuntimeError(
                "env.execute() would block the event loop that is running here; "
                "use `await env.execute_async(...)`"
            )
        graph, config = self._take(job_name)
        from runtime.execution import execute_here

        return execute_here(graph, config)

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Starts the job and returns at once.

        Within a running event loop the job runs in that loop, otherwise in a thread of its own.
        The client can be awaited for the result.
        """
        graph, config = self._take(job_name)
        from runtime.client import JobClient
        from runtime.execution import execute_beside, execute_within

        start = execute_within if _in_event_loop() else execute_beside
        return JobClient(start(graph, config))

    def start_collecting(
        self, results: ResultBuffer[object], job_name: str | None
    ) -> Callable[[], None]:
        """Starts the job for `DataStream.execute_and_collect`; see `GraphOwner`."""
        if _in_event_loop():
            raise RuntimeError(
                "execute_and_collect() would block the event loop that is running here; give the "
                "stream a sink and use `await env.execute_async(...)`"
            )
        graph, config = self._take(job_name)
        from runtime.execution import execute_beside, interruption, watch_for_readers

        job = execute_beside(graph, config, log_failure=False)
        job.on_unread = results.abandon
        watch_for_readers()

        def finish(done: Future[JobExecutionResult]) -> None:
            # A signal that stopped the job ends its consumer too, after what came out.
            results.finish(done.exception() or interruption())

        def abandoned() -> None:
            job.request_stop("its results are not wanted any more")

        def stop() -> None:
            abandoned()
            job.wait()
            error = job.future.exception()
            if error is not None and not results.error_raised:
                logger.warning("after its results were not wanted any more: %s", error)

        results.on_abandon(abandoned)
        job.future.add_done_callback(finish)
        return stop

    def get_execution_plan(self) -> str:
        """The job's graph as JSON: nodes and their predecessors."""
        graph = self._pending_graph()
        graph.validate(self.get_parallelism())
        return execution_plan_json(graph, self.get_parallelism())

    def _take(self, job_name: str | None) -> tuple[StreamGraph, JobConfig]:
        """What is to run, checked; from now on it counts as run."""
        if not _in_event_loop():
            configure_unless_done()
        config = self._layers.freeze(job_name, default_job_name())
        graph = self._pending_graph()
        plan = build_plan(
            graph,
            parallelism=config.parallelism,
            max_parallelism=config.max_parallelism,
            chaining=config.chaining,
        )
        launch = current_launch()
        launch.executions += 1
        if launch.plan_only:
            sys.stdout.write(f"{config.name}\n{plan.describe()}\n")
            raise SystemExit(0)
        _check_uids(graph, config)
        self._executed.update(graph.nodes)
        _announce(config, plan)
        return graph, config

    def _pending_graph(self) -> StreamGraph:
        """The operators that have not run yet, and those that these need (as in Flink).

        A second `execute` runs what was added since the first one.
        """
        wanted = set(self._graph.nodes) - self._executed
        # Nodes come after their inputs, so one pass from the end finds all that is needed.
        for node in reversed(self._graph.nodes.values()):
            if node.id in wanted:
                wanted.update(edge.source for edge in node.inputs)
        pending = StreamGraph(self)
        pending.nodes = {key: node for key, node in self._graph.nodes.items() if key in wanted}
        return pending


def _check_uids(graph: StreamGraph, config: JobConfig) -> None:
    without = graph.nodes_without_uid()
    if not without:
        return
    if not config.auto_generated_uids:
        names = ", ".join(repr(node.name) for node in without)
        raise ConfigurationError(
            f"operators without a uid: {names}; call .uid(...) on each, or leave "
            "pipeline.auto-generate-uids on"
        )
    names = ", ".join(repr(node.name) for node in without if node.may_have_state)
    if names and config.checkpoints.enabled:
        logger.warning(
            "job %r: operators without a uid (%s) find their state again only as long as the "
            "graph before them stays as it is; call .uid(...) on what is to keep its state",
            config.name,
            names,
        )


def _announce(config: JobConfig, plan: ExecutionPlan) -> None:
    checkpoints = config.checkpoints
    logger.info(
        "job %r: operators %d, tasks %d, parallelism %d, %s",
        config.name,
        len(plan.operators),
        sum(vertex.parallelism for vertex in plan.vertices),
        config.parallelism,
        f"a checkpoint each {checkpoints.interval_ms} ms under {checkpoints.directory}"
        if checkpoints.enabled
        else "no checkpoints",
    )


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
