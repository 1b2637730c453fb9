"""Settings of how a job survives failures and ends: checkpoints, restarts, recovery, stop."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.config_options import (
    CheckedSettings,
    boolean,
    choice,
    duration,
    duration_or_off,
    integer,
    number,
    option,
    optional_text,
    text,
)
from runtime.errors import ConfigurationError

TOLERABLE_FAILURES_KEY = "execution.checkpointing.tolerable-failed-checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings(CheckedSettings):
    """How often and how patiently checkpoints are taken, and where they are kept."""

    interval_ms: int | None = option(
        "execution.checkpointing.interval",
        duration_or_off(minimum_ms=10),
        None,
        "Time from the start of one checkpoint to the start of the next; checkpoints are off "
        "unless it is set.",
    )
    timeout_ms: int = option(
        "execution.checkpointing.timeout",
        duration(minimum_ms=10),
        600_000,
        "A checkpoint that is not complete after this time has failed.",
    )
    min_pause_ms: int = option(
        "execution.checkpointing.min-pause",
        duration(),
        0,
        "Least time between the end of one checkpoint and the start of the next.",
    )
    max_concurrent: int = option(
        "execution.checkpointing.max-concurrent-checkpoints",
        integer(1),
        1,
        "How many checkpoints may be under way at once; a minimum pause makes it one.",
    )
    tolerable_failures: int = option(
        TOLERABLE_FAILURES_KEY,
        integer(0),
        0,
        "How many checkpoints in a row may fail before the job fails.",
    )
    directory: str = option(
        "execution.checkpointing.dir",
        text("the path of a folder"),
        "./checkpoints",
        "The folder under which each job has one of its own, named after it.",
    )
    retained: int = option(
        "execution.checkpointing.num-retained",
        integer(1),
        3,
        "How many complete checkpoints are kept; they stay after the end of the job.",
    )

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are taken."""
        return self.interval_ms is not None


RESTART_DEFAULT = "default"
RESTART_NONE = "none"
RESTART_FIXED_DELAY = "fixed-delay"
RESTART_EXPONENTIAL_DELAY = "exponential-delay"
RESTART_FAILURE_RATE = "failure-rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartSettings(CheckedSettings):
    """What happens when a job fails."""

    strategy: str = option(
        "restart-strategy.type",
        choice(
            RESTART_DEFAULT,
            RESTART_NONE,
            RESTART_FIXED_DELAY,
            RESTART_EXPONENTIAL_DELAY,
            RESTART_FAILURE_RATE,
            also={
                "off": RESTART_NONE,
                "disable": RESTART_NONE,
                "fixeddelay": RESTART_FIXED_DELAY,
                "exponentialdelay": RESTART_EXPONENTIAL_DELAY,
                "failurerate": RESTART_FAILURE_RATE,
            },
        ),
        RESTART_DEFAULT,
        "Whether and when a failed job is started again from its newest checkpoint. The default "
        "is exponential-delay with checkpoints and none without.",
    )
    fixed_delay_attempts: int = option(
        "restart-strategy.fixed-delay.attempts",
        integer(0),
        1,
        "How many times a job is started again before it has failed for good.",
    )
    fixed_delay_ms: int = option(
        "restart-strategy.fixed-delay.delay",
        duration(),
        1_000,
        "How long to wait before each new start.",
    )
    initial_backoff_ms: int = option(
        "restart-strategy.exponential-delay.initial-backoff",
        duration(minimum_ms=1),
        1_000,
        "How long to wait before the first new start.",
    )
    max_backoff_ms: int = option(
        "restart-strategy.exponential-delay.max-backoff",
        duration(minimum_ms=1),
        60_000,
        "The longest wait before a new start.",
    )
    backoff_multiplier: float = option(
        "restart-strategy.exponential-delay.backoff-multiplier",
        number(1.0, 100.0),
        2.0,
        "By how much the wait grows with each failure. (Flink's default: 1.5.)",
    )
    jitter_factor: float = option(
        "restart-strategy.exponential-delay.jitter-factor",
        number(0.0, 1.0),
        0.1,
        "How far a wait may differ, at random, from its computed length, as a share of it.",
    )
    attempts: int = option(
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        integer(0),
        10,
        "How many new starts without a completed checkpoint between them are made before the job "
        "has failed for good. A completed checkpoint sets the wait back to the first one.",
    )
    failure_rate_failures: int = option(
        "restart-strategy.failure-rate.max-failures-per-interval",
        integer(0),
        1,
        "How many failures within the interval are followed by a new start; one more is the end.",
    )
    failure_rate_interval_ms: int = option(
        "restart-strategy.failure-rate.failure-rate-interval",
        duration(minimum_ms=1),
        60_000,
        "The length of the interval in which failures are counted.",
    )
    failure_rate_delay_ms: int = option(
        "restart-strategy.failure-rate.delay",
        duration(),
        1_000,
        "How long to wait before each new start.",
    )

    def __post_init__(self) -> None:
        CheckedSettings.__post_init__(self)
        if self.initial_backoff_ms > self.max_backoff_ms:
            raise ConfigurationError(
                "restart-strategy.exponential-delay: initial-backoff "
                f"({self.initial_backoff_ms} ms) is longer than max-backoff "
                f"({self.max_backoff_ms} ms); raise the one or lower the other"
            )

    def effective_strategy(self, *, checkpoints: bool) -> str:
        """The strategy with the default resolved."""
        if self.strategy != RESTART_DEFAULT:
            return self.strategy
        return RESTART_EXPONENTIAL_DELAY if checkpoints else RESTART_NONE


LATEST = "latest"
"""The start path that means the newest usable checkpoint in the job's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings(CheckedSettings):
    """From which saved state a job starts."""

    path: str | None = option(
        "execution.state-recovery.path",
        optional_text(f"the path of a checkpoint, or '{LATEST}'"),
        None,
        "The checkpoint to start from; 'latest' is the newest usable one of the job's folder "
        "(`--from`).",
    )
    fresh: bool = option(
        "riverrun.recovery.fresh",
        boolean(),
        False,
        "Start without state although the folder holds checkpoints of an unfinished run "
        "(`--fresh`).",
    )
    allow_non_restored_state: bool = option(
        "execution.state-recovery.ignore-unclaimed-state",
        boolean(),
        False,
        "Start also if the checkpoint holds state that no operator of the job claims; that state "
        "is dropped (`--allow-non-restored-state`).",
    )

    def __post_init__(self) -> None:
        CheckedSettings.__post_init__(self)
        if self.fresh and self.path is not None:
            raise ConfigurationError(
                f"--fresh starts without state, --from {self.path} starts with it; give one of "
                "the two"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StopSettings(CheckedSettings):
    """How long a job may take to end."""

    stop_timeout_ms: int = option(
        "riverrun.stop.timeout",
        duration(minimum_ms=1),
        20_000,
        "How long a clean stop may take, its final checkpoint included, before the job is "
        "cancelled.",
    )
    cancellation_timeout_ms: int = option(
        "task.cancellation.timeout",
        duration(minimum_ms=1),
        10_000,
        "How long cancelled tasks may take to end before the process leaves without them. "
        "(Flink's default: 3 min.)",
    )
