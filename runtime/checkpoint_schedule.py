"""When the next checkpoint is due: interval, pause after a completion, requests; pure."""

from __future__ import annotations

from runtime.survival_settings import CheckpointSettings


class CheckpointSchedule:
    """Knows the time of the next trigger (Flink: `CheckpointRequestDecider`).

    Periodic triggers are an interval apart from trigger to trigger and at least `min_pause_ms`
    behind the last completion; a request is due at once. How many may be pending is not its
    affair.
    """

    def __init__(self, settings: CheckpointSettings) -> None:
        self._interval_ms = settings.interval_ms
        self._min_pause_ms = settings.min_pause_ms
        self._periodic_at: int | None = None
        self._pause_until: int | None = None
        self._requested = False

    def start(self, now_ms: int) -> None:
        """Periodic triggers begin; the first is an interval away."""
        self._requested = False
        self._periodic_at = None if self._interval_ms is None else now_ms + self._interval_ms

    def stop(self) -> None:
        """Nothing is due any more, requests included, until the next `start`."""
        self._requested = False
        self._periodic_at = None

    def stop_periodic(self) -> None:
        """Only requests count from now on."""
        self._periodic_at = None

    def request(self) -> None:
        """The next trigger is due at once."""
        self._requested = True

    def triggered(self, now_ms: int) -> None:
        """A checkpoint has begun."""
        self._requested = False
        if self._periodic_at is not None and self._interval_ms is not None:
            self._periodic_at = now_ms + self._interval_ms

    def completed(self, now_ms: int) -> None:
        """A checkpoint has completed: the pause begins."""
        self._pause_until = now_ms + self._min_pause_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether a checkpoint should begin now."""
        periodic_at = self.periodic_at
        return self._requested or (periodic_at is not None and now_ms >= periodic_at)

    @property
    def periodic_at(self) -> int | None:
        """When the next periodic trigger is due."""
        if self._periodic_at is None or self._pause_until is None:
            return self._periodic_at
        return max(self._periodic_at, self._pause_until)
