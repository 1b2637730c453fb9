"""What a job is told about how to run: frozen values, validated once, units in their names.

Each field that a user may set declares its configuration key, so that the table of keys, its
documentation and the values cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime.config_options import (
    CheckedSettings,
    ConfigOption,
    boolean,
    choice,
    duration,
    integer,
    mapping,
    nearest,
    option,
    options_of,
    text,
)
from runtime.errors import ConfigurationError
from runtime.survival_settings import (
    CheckpointSettings,
    RecoverySettings,
    RestartSettings,
    StopSettings,
)
from statebackends.keygroups import DEFAULT_MAX_PARALLELISM, MAX_PARALLELISM_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSettings(CheckedSettings):
    """Where keyed state and timers live, and how their snapshots are taken."""

    backend: str = option(
        "state.backend.type",
        choice("heap", also={"hashmap": "heap"}),
        "heap",
        "Where keyed state lives: 'heap' (Flink's word 'hashmap' is taken too).",
    )
    timers: str = option(
        "riverrun.timers.type",
        choice("heap"),
        "heap",
        "Where timers live.",
    )
    fork_entries_min: int = option(
        "riverrun.snapshot.fork-threshold",
        integer(0),
        5_000,
        "From how many entries of keyed state on a snapshot is written by a forked process; "
        "smaller ones are written at once.",
    )
    detect_late_changes: bool = option(
        "riverrun.state.detect-late-changes",
        boolean(),
        False,
        "Fail where a mutable object in state was changed after the user call that got or stored "
        "it, or lies under two keys. For the search of mistakes: it pickles every such object "
        "after every call.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings(CheckedSettings):
    """How records move: the bounds of queues, batches and turns."""

    channel_capacity_records: int = option(
        "riverrun.channel.capacity",
        integer(1),
        4_096,
        "How many records may wait in one channel before its sender is held back.",
    )
    batch_records_max: int = option(
        "riverrun.batch.records",
        integer(1, 65_536),
        1_024,
        "How many records a batch may hold. Batches form from backlog, never by waiting.",
    )
    turn_budget_ms: int = option(
        "riverrun.turn.budget",
        duration(minimum_ms=1, maximum_ms=1_000),
        2,
        "How long all tasks together may work before the event loop comes round.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig(CheckedSettings):
    """Everything the runtime reads about one job."""

    name: str = option(
        "pipeline.name",
        text("a name"),
        "riverrun job",
        "The job's name, by default that of its file. The folder of its checkpoints is named "
        "after it.",
    )
    parallelism: int = option(
        "parallelism.default",
        integer(1, MAX_PARALLELISM_LIMIT),
        1,
        "How many subtasks an operator has that does not say itself.",
    )
    max_parallelism: int = option(
        "pipeline.max-parallelism",
        integer(1, MAX_PARALLELISM_LIMIT),
        DEFAULT_MAX_PARALLELISM,
        "The number of key groups, and so the highest parallelism that the state can ever be "
        "spread over; fixed when a job first runs.",
    )
    auto_watermark_interval_ms: int = option(
        "pipeline.auto-watermark-interval",
        duration(),
        200,
        "How often periodic watermark generators are asked; 0 asks them at the end only.",
    )
    chaining: bool = option(
        "pipeline.operator-chaining.enabled",
        boolean(),
        True,
        "Whether operators may share a task, their outputs passed on by direct calls.",
    )
    object_reuse: bool = option(
        "pipeline.object-reuse",
        boolean(),
        True,
        "Whether the operators of a process get the same objects. If not, each operator gets "
        "copies of its own, so that a function may change what it was given or has put out: slow, "
        "and a way to find the one that does. (Flink's default: false.)",
    )
    auto_generated_uids: bool = option(
        "pipeline.auto-generate-uids",
        boolean(),
        True,
        "Whether operators without a uid get one made from their place in the graph; if not, "
        "each must have one.",
    )
    buffer_timeout_ms: int = option(
        "execution.buffer-timeout.interval",
        duration(minimum_ms=-1),
        100,
        "Taken for the sake of jobs written for Flink, without effect: batches never wait.",
    )
    global_job_parameters: Mapping[str, str] = option(
        "pipeline.global-job-parameters",
        mapping(),
        {},
        "Texts by name that user functions can read.",
    )
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    restart: RestartSettings = field(default_factory=RestartSettings)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    state: StateSettings = field(default_factory=StateSettings)
    flow: FlowSettings = field(default_factory=FlowSettings)
    stop: StopSettings = field(default_factory=StopSettings)

    def __post_init__(self) -> None:
        CheckedSettings.__post_init__(self)
        if self.parallelism > self.max_parallelism:
            raise ConfigurationError(
                f"parallelism.default is {self.parallelism}, above pipeline.max-parallelism "
                f"({self.max_parallelism}); lower the one or, for a job without state, raise the "
                "other"
            )


SECTIONS: Mapping[str, type[CheckedSettings]] = {
    "": JobConfig,
    "checkpoints": CheckpointSettings,
    "restart": RestartSettings,
    "recovery": RecoverySettings,
    "state": StateSettings,
    "flow": FlowSettings,
    "stop": StopSettings,
}
"""The classes that declare options, by the field of `JobConfig` that holds them."""


def _all_options() -> Iterator[ConfigOption[Any]]:
    for section in SECTIONS.values():
        yield from options_of(section).values()


OPTIONS: Mapping[str, ConfigOption[Any]] = {one.key: one for one in _all_options()}
"""Every configuration key."""


def find_option(key: str) -> ConfigOption[Any]:
    """The option of a key; raises ConfigurationError naming the nearest known key."""
    found = OPTIONS.get(key)
    if found is None:
        raise ConfigurationError(
            f"unknown configuration key {key!r}{nearest(key, OPTIONS)} "
            "(all keys are in docs/configuration.md)"
        )
    return found


def job_config(values: Mapping[str, object]) -> JobConfig:
    """The frozen configuration from values by key; what is not given has its default.

    Raises ConfigurationError for an unknown key, an impossible value or values that contradict
    each other.
    """
    for key in values:
        find_option(key)
    sections: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        given = {
            attribute: values[one.key]
            for attribute, one in options_of(section).items()
            if one.key in values
        }
        if name:
            sections[name] = section(**given)
        else:
            sections.update(given)
    return JobConfig(**sections)
