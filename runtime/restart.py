"""Whether and when a failed job is started again; pure, time and chance are passed in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from random import Random

from operators.time import TimeLike, to_ms
from runtime.survival_settings import (
    RESTART_DEFAULT,
    RESTART_EXPONENTIAL_DELAY,
    RESTART_FAILURE_RATE,
    RESTART_FIXED_DELAY,
    RESTART_NONE,
    RestartSettings,
)


class RestartStrategy(ABC):
    """Decides after each failure (Flink: `RestartBackoffTimeStrategy`).

    First `failed`, then ask `can_restart` and `delay_ms`; asking twice changes nothing.
    """

    @abstractmethod
    def failed(self, now_ms: int) -> None:
        """The job failed, or failed again while it waits for its new start."""

    def checkpoint_completed(self) -> None:  # noqa: B027 - most strategies do not look at it
        """The job has got somewhere since its last start."""

    @property
    @abstractmethod
    def can_restart(self) -> bool:
        """Whether the job is started again."""

    @property
    @abstractmethod
    def delay_ms(self) -> int:
        """How long to wait from the failure to the new start."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The decision in words, for the log ("start 2 of at most 10")."""


class NoRestart(RestartStrategy):
    """A failure is the end."""

    can_restart = False
    delay_ms = 0
    verdict = "no restart is configured"

    def failed(self, now_ms: int) -> None:
        """Nothing to remember."""


class FixedDelayRestart(RestartStrategy):
    """A fixed number of new starts, each after the same wait."""

    def __init__(self, attempts: int, delay_ms: int) -> None:
        self._attempts = attempts
        self._delay_ms = delay_ms
        self._failures = 0

    def failed(self, now_ms: int) -> None:
        """One more failure."""
        self._failures += 1

    @property
    def can_restart(self) -> bool:
        """Whether the number is not used up."""
        return self._failures <= self._attempts

    @property
    def delay_ms(self) -> int:
        """The configured wait."""
        return self._delay_ms

    @property
    def verdict(self) -> str:
        """Which of the starts this would be."""
        return _verdict(self._failures, self._attempts)


class FailureRateRestart(RestartStrategy):
    """New starts after the same wait, as long as failures are rare.

    At most `failures_max` of them may lie within any `interval_ms` (Flink:
    `FailureRateRestartBackoffTimeStrategy`).
    """

    def __init__(self, failures_max: int, interval_ms: int, delay_ms: int) -> None:
        self._failures_max = failures_max
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms
        self._failures: deque[int] = deque(maxlen=failures_max + 1)

    def failed(self, now_ms: int) -> None:
        """Remembers when; failures older than the interval are forgotten."""
        self._failures.append(now_ms)
        while self._failures[0] < now_ms - self._interval_ms:
            self._failures.popleft()

    @property
    def can_restart(self) -> bool:
        """Whether there were no more failures than allowed."""
        return len(self._failures) <= self._failures_max

    @property
    def delay_ms(self) -> int:
        """The configured wait."""
        return self._delay_ms

    @property
    def verdict(self) -> str:
        """How many of the allowed failures there were."""
        within = f"within {self._interval_ms} ms"
        if self.can_restart:
            return f"failure {len(self._failures)} of at most {self._failures_max} {within}"
        return f"more than {self._failures_max} failures {within}"


class ExponentialDelayRestart(RestartStrategy):
    """Waits that grow with each failure, until the job has got somewhere.

    The wait grows by `multiplier` from `initial_ms` to at most `max_ms` and differs from that
    by at most the share `jitter`, at random. A failure that comes after the job ran for
    `reset_threshold_ms` since its last start begins again with the first wait, and so does one
    after a completed checkpoint; failures that come while a start is awaited count as one.
    `attempts` is the number of new starts without either of the two between them.
    """

    def __init__(
        self,
        random: Random,
        *,
        initial_ms: int = 1_000,
        max_ms: int = 60_000,
        multiplier: float = 2.0,
        jitter: float = 0.1,
        attempts: int | None = 10,
        reset_threshold_ms: int = 3_600_000,
    ) -> None:
        self._random = random
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._multiplier = multiplier
        self._jitter = jitter
        self._attempts = attempts
        self._reset_threshold_ms = reset_threshold_ms
        self._failures = 0
        self._backoff_ms = initial_ms
        self._delay_ms = initial_ms
        self._start_at: int | None = None

    def failed(self, now_ms: int) -> None:
        """Lengthens the wait, or takes it back to the first one."""
        start_at = self._start_at
        if start_at is not None and now_ms < start_at:
            return
        if start_at is not None and now_ms >= start_at + self._reset_threshold_ms:
            self._reset()
        if self._failures:
            self._backoff_ms = min(self._max_ms, int(self._backoff_ms * self._multiplier))
        self._failures += 1
        spread = int(self._backoff_ms * self._jitter)
        drawn = self._backoff_ms + self._random.randint(-spread, spread)
        self._delay_ms = max(0, min(self._max_ms, drawn))
        self._start_at = now_ms + self._delay_ms

    def checkpoint_completed(self) -> None:
        """The next failure is the first one again."""
        self._reset()

    def _reset(self) -> None:
        self._failures = 0
        self._backoff_ms = self._initial_ms

    @property
    def can_restart(self) -> bool:
        """Whether the number of starts is not used up."""
        return self._attempts is None or self._failures <= self._attempts

    @property
    def delay_ms(self) -> int:
        """The present wait."""
        return self._delay_ms

    @property
    def verdict(self) -> str:
        """Which of the starts this would be."""
        return _verdict(self._failures, self._attempts)


def _verdict(failures: int, attempts: int | None) -> str:
    if attempts is None:
        return f"start {failures}"
    if failures > attempts:
        return f"the {attempts} new starts allowed are used up"
    return f"start {failures} of at most {attempts}"


def restart_strategy(
    settings: RestartSettings, random: Random, *, checkpoints: bool
) -> RestartStrategy:
    """The strategy that the settings name; `checkpoints` decides what the default is."""
    strategy = settings.effective_strategy(checkpoints=checkpoints)
    if strategy == RESTART_FIXED_DELAY:
        return FixedDelayRestart(settings.fixed_delay_attempts, settings.fixed_delay_ms)
    if strategy == RESTART_FAILURE_RATE:
        return FailureRateRestart(
            settings.failure_rate_failures,
            settings.failure_rate_interval_ms,
            settings.failure_rate_delay_ms,
        )
    if strategy == RESTART_EXPONENTIAL_DELAY:
        return ExponentialDelayRestart(
            random,
            initial_ms=settings.initial_backoff_ms,
            max_ms=settings.max_backoff_ms,
            multiplier=settings.backoff_multiplier,
            jitter=settings.jitter_factor,
            attempts=settings.attempts,
        )
    return NoRestart()


class RestartStrategies:
    """Settings by the names of PyFlink's factories; lengths of time as everywhere else."""

    @staticmethod
    def no_restart() -> RestartSettings:
        """A failure is the end."""
        return RestartSettings(strategy=RESTART_NONE)

    @staticmethod
    def fall_back_restart() -> RestartSettings:
        """What holds where nothing is set: exponential delay with checkpoints, else none."""
        return RestartSettings(strategy=RESTART_DEFAULT)

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: TimeLike
    ) -> RestartSettings:
        """A fixed number of new starts, each after the same wait."""
        return RestartSettings(
            strategy=RESTART_FIXED_DELAY,
            fixed_delay_attempts=restart_attempts,
            fixed_delay_ms=to_ms(delay_between_attempts, "delay_between_attempts"),
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: TimeLike, delay_interval: TimeLike
    ) -> RestartSettings:
        """New starts as long as at most `failure_rate` failures lie within an interval."""
        return RestartSettings(
            strategy=RESTART_FAILURE_RATE,
            failure_rate_failures=failure_rate,
            failure_rate_interval_ms=to_ms(failure_interval, "failure_interval"),
            failure_rate_delay_ms=to_ms(delay_interval, "delay_interval"),
        )

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: TimeLike = 1_000,
        max_backoff: TimeLike = 60_000,
        backoff_multiplier: float = 2.0,
        jitter_factor: float = 0.1,
        attempts: int = 10,
    ) -> RestartSettings:
        """Waits that grow with each failure until a checkpoint completes."""
        return RestartSettings(
            strategy=RESTART_EXPONENTIAL_DELAY,
            initial_backoff_ms=to_ms(initial_backoff, "initial_backoff"),
            max_backoff_ms=to_ms(max_backoff, "max_backoff"),
            backoff_multiplier=backoff_multiplier,
            jitter_factor=jitter_factor,
            attempts=attempts,
        )
