"""Restart strategies as objects (PyFlink: `RestartStrategies`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from operators.time import TimeLike
from runtime.survival_settings import (
    RESTART_DEFAULT,
    RESTART_EXPONENTIAL_DELAY,
    RESTART_FIXED_DELAY,
    RESTART_NONE,
)


@dataclass(frozen=True, slots=True)
class RestartStrategyConfiguration:
    """What a strategy sets, by configuration key."""

    values: Mapping[str, object]


class RestartStrategies:
    """Makes the strategies for `StreamExecutionEnvironment.set_restart_strategy`."""

    @staticmethod
    def no_restart() -> RestartStrategyConfiguration:
        """A failure ends the job."""
        return RestartStrategyConfiguration({"restart-strategy.type": RESTART_NONE})

    @staticmethod
    def fall_back_restart() -> RestartStrategyConfiguration:
        """The default: exponential delay with checkpoints, no restart without."""
        return RestartStrategyConfiguration({"restart-strategy.type": RESTART_DEFAULT})

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: TimeLike
    ) -> RestartStrategyConfiguration:
        """So many new starts, each after the same wait."""
        return RestartStrategyConfiguration(
            {
                "restart-strategy.type": RESTART_FIXED_DELAY,
                "restart-strategy.fixed-delay.attempts": restart_attempts,
                "restart-strategy.fixed-delay.delay": delay_between_attempts,
            }
        )

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: TimeLike = 1_000,
        max_backoff: TimeLike = 60_000,
        backoff_multiplier: float = 2.0,
        jitter_factor: float = 0.1,
        restart_attempts: int = 10,
    ) -> RestartStrategyConfiguration:
        """New starts after ever longer waits, until a completed checkpoint sets them back."""
        prefix = "restart-strategy.exponential-delay"
        return RestartStrategyConfiguration(
            {
                "restart-strategy.type": RESTART_EXPONENTIAL_DELAY,
                f"{prefix}.initial-backoff": initial_backoff,
                f"{prefix}.max-backoff": max_backoff,
                f"{prefix}.backoff-multiplier": backoff_multiplier,
                f"{prefix}.jitter-factor": jitter_factor,
                f"{prefix}.attempts-before-reset-backoff": restart_attempts,
            }
        )
