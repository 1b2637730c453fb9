"""The settings as PyFlink's mutable objects; `execute` freezes what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Self

from operators.time import TimeLike
from runtime.errors import ConfigurationError
from runtime.setting_layers import SettingLayers


class CheckpointingMode(Enum):
    """What a checkpoint guarantees for state (PyFlink: `CheckpointingMode`)."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class ExternalizedCheckpointRetention(Enum):
    """What becomes of checkpoints when a job is cancelled (PyFlink's names)."""

    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"


class ExecutionConfig:
    """How the operators of a job run (PyFlink: `ExecutionConfig`)."""

    def __init__(self, layers: SettingLayers) -> None:
        self._layers = layers

    def set_parallelism(self, parallelism: int) -> Self:
        """How many subtasks an operator has that does not say itself."""
        self._layers.set("parallelism.default", parallelism, "set_parallelism")
        return self

    def get_parallelism(self) -> int:
        """The parallelism in force."""
        return self._layers.integer("parallelism.default")

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of key groups, fixed when the job first runs."""
        self._layers.set("pipeline.max-parallelism", max_parallelism, "set_max_parallelism")
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups in force."""
        return self._layers.integer("pipeline.max-parallelism")

    def set_auto_watermark_interval(self, interval: TimeLike) -> Self:
        """How often periodic watermark generators are asked; an integer is milliseconds."""
        key = "pipeline.auto-watermark-interval"
        self._layers.set(key, interval, "set_auto_watermark_interval")
        return self

    def get_auto_watermark_interval(self) -> int:
        """The interval in force, in milliseconds."""
        return self._layers.integer("pipeline.auto-watermark-interval")

    def set_task_cancellation_timeout(self, timeout: TimeLike) -> Self:
        """How long cancelled tasks may take to end; an integer is milliseconds."""
        key = "task.cancellation.timeout"
        self._layers.set(key, timeout, "set_task_cancellation_timeout")
        return self

    def get_task_cancellation_timeout(self) -> int:
        """The time in force, in milliseconds."""
        return self._layers.integer("task.cancellation.timeout")

    def enable_object_reuse(self) -> Self:
        """The operators of a process get the same objects (the default)."""
        self._layers.set("pipeline.object-reuse", True)
        return self

    def disable_object_reuse(self) -> Self:
        """Each operator gets copies of its own, and may change them; slow."""
        self._layers.set("pipeline.object-reuse", False)
        return self

    def is_object_reuse_enabled(self) -> bool:
        """Whether operators get the same objects."""
        return bool(self._layers.get("pipeline.object-reuse"))

    def enable_auto_generated_uids(self) -> Self:
        """Operators without a uid get one made from their place in the graph (the default)."""
        self._layers.set("pipeline.auto-generate-uids", True)
        return self

    def disable_auto_generated_uids(self) -> Self:
        """Each operator must have a uid, else the job is refused."""
        self._layers.set("pipeline.auto-generate-uids", False)
        return self

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators may go without a uid."""
        return bool(self._layers.get("pipeline.auto-generate-uids"))

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, str]) -> Self:
        """Texts by name that user functions can read."""
        key = "pipeline.global-job-parameters"
        self._layers.set(key, global_job_parameters_dict, "set_global_job_parameters")
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """A copy of the parameters."""
        return dict(self._layers.get("pipeline.global-job-parameters"))


class CheckpointConfig:
    """How checkpoints are taken (PyFlink: `CheckpointConfig`). Integers are milliseconds."""

    def __init__(self, layers: SettingLayers) -> None:
        self._layers = layers

    def is_checkpointing_enabled(self) -> bool:
        """Whether checkpoints are taken."""
        return self._layers.get("execution.checkpointing.interval") is not None

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> Self:
        """Only EXACTLY_ONCE; raises ConfigurationError for another mode."""
        if checkpointing_mode is not CheckpointingMode.EXACTLY_ONCE:
            raise ConfigurationError(
                f"set_checkpointing_mode: {checkpointing_mode!r} cannot be used; it must be "
                "CheckpointingMode.EXACTLY_ONCE, which gives all that the weaker mode promises"
            )
        return self

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """EXACTLY_ONCE."""
        return CheckpointingMode.EXACTLY_ONCE

    def set_checkpoint_interval(self, checkpoint_interval: TimeLike) -> Self:
        """Time from the start of one checkpoint to the start of the next."""
        key = "execution.checkpointing.interval"
        self._layers.set(key, checkpoint_interval, "set_checkpoint_interval")
        return self

    def get_checkpoint_interval(self) -> int:
        """The interval in force, in milliseconds; -1 when checkpoints are off."""
        interval_ms = self._layers.get("execution.checkpointing.interval")
        return -1 if interval_ms is None else int(interval_ms)

    def set_checkpoint_timeout(self, checkpoint_timeout: TimeLike) -> Self:
        """A checkpoint that is not complete after this time has failed."""
        key = "execution.checkpointing.timeout"
        self._layers.set(key, checkpoint_timeout, "set_checkpoint_timeout")
        return self

    def get_checkpoint_timeout(self) -> int:
        """The time in force, in milliseconds."""
        return self._layers.integer("execution.checkpointing.timeout")

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: TimeLike) -> Self:
        """Least time between the end of one checkpoint and the start of the next."""
        key = "execution.checkpointing.min-pause"
        self._layers.set(key, min_pause_between_checkpoints, "set_min_pause_between_checkpoints")
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """The pause in force, in milliseconds."""
        return self._layers.integer("execution.checkpointing.min-pause")

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> Self:
        """How many checkpoints may be under way at once."""
        key = "execution.checkpointing.max-concurrent-checkpoints"
        self._layers.set(key, max_concurrent_checkpoints, "set_max_concurrent_checkpoints")
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """The number in force."""
        return self._layers.integer("execution.checkpointing.max-concurrent-checkpoints")

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> Self:
        """How many checkpoints in a row may fail before the job fails."""
        self._layers.set(
            "execution.checkpointing.tolerable-failed-checkpoints",
            tolerable_checkpoint_failure_number,
            "set_tolerable_checkpoint_failure_number",
        )
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """The number in force."""
        return self._layers.integer("execution.checkpointing.tolerable-failed-checkpoints")

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> Self:
        """Only RETAIN_ON_CANCELLATION; raises ConfigurationError for another mode."""
        if retention_mode is not ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION:
            raise ConfigurationError(
                f"set_externalized_checkpoint_retention: {retention_mode!r} cannot be used; it "
                "must be ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: checkpoints stay "
                "in the job's folder however the job ended (--fresh starts without them)"
            )
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether checkpoints outlive the job: always, where there are any."""
        return self.is_checkpointing_enabled()

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """RETAIN_ON_CANCELLATION."""
        return ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
