"""Counters of the checkpoint coordinator, and the frozen record of them that others read."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class CheckpointStatistics:
    """A snapshot of the coordinator's counters (Flink: `CheckpointStatsTracker`).

    Duration is from trigger to completion, size the sum of the state files. `failed` counts the
    aborted ones that count as failures, `dropped_messages` those of another attempt, of an
    unknown checkpoint or subtask, and repeated ones.
    """

    triggered: int = 0
    completed: int = 0
    aborted: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    pending: int = 0
    dropped_messages: int = 0
    latest_completed_id: int | None = None
    latest_completion_ms: int | None = None
    latest_duration_ms: int | None = None
    latest_size_bytes: int | None = None
    latest_failure: str | None = None


class CheckpointCounters:
    """What the coordinator counts with; `statistics` gives the record."""

    def __init__(self, latest_completed_id: int | None) -> None:
        self.statistics = CheckpointStatistics(latest_completed_id=latest_completed_id)

    def attempt_started(self) -> None:
        """Failures of a former attempt are no reason to fail this one."""
        self.statistics = replace(self.statistics, failed_in_a_row=0)

    def triggered(self) -> None:
        """One more has begun."""
        self.statistics = replace(self.statistics, triggered=self.statistics.triggered + 1)

    def completed(self, checkpoint_id: int, triggered_ms: int, now_ms: int, size: int) -> None:
        """One is complete; `size` in bytes."""
        self.statistics = replace(
            self.statistics,
            completed=self.statistics.completed + 1,
            failed_in_a_row=0,
            latest_completed_id=checkpoint_id,
            latest_completion_ms=now_ms,
            latest_duration_ms=now_ms - triggered_ms,
            latest_size_bytes=size,
        )

    def aborted(self) -> None:
        """One was given up, for whatever reason."""
        self.statistics = replace(self.statistics, aborted=self.statistics.aborted + 1)

    def failed(self, text: str) -> int:
        """One was given up because it failed; gives the failures in a row."""
        in_a_row = self.statistics.failed_in_a_row + 1
        self.statistics = replace(
            self.statistics,
            failed=self.statistics.failed + 1,
            failed_in_a_row=in_a_row,
            latest_failure=text,
        )
        return in_a_row

    def dropped(self) -> None:
        """A message fitted nothing."""
        dropped = self.statistics.dropped_messages + 1
        self.statistics = replace(self.statistics, dropped_messages=dropped)
