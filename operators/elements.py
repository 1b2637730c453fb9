"""Everything that travels on a channel."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

MIN_TIMESTAMP = -(2**63)
"""As a watermark: nothing is known yet. As a record's timestamp: none (refused)."""

MAX_TIMESTAMP = 2**63 - 1
"""As a watermark: no record will come any more."""

RECORD_TIMESTAMP_LIMIT = 2**62
"""Timestamps of records lie strictly between minus this and this, so that no sum overflows."""


class RecordBatch:
    """Records as a struct of arrays; order is arrival order.

    A batch has one owner: after it was handed on it is read-only for sender and receivers.

    * `values`: the records.
    * `timestamps`: event times in ms, one per record (None for a record without one), or None
      if no record has one.
    * `keys`: on keyed edges the key of each record, else None.
    * `origin`: names the place a record came from, by its index in this batch, where known
      ("clicks[3]@1042"); for error messages only.
    """

    __slots__ = ("keys", "origin", "timestamps", "values")

    def __init__(
        self,
        values: list[object],
        timestamps: list[int | None] | None = None,
        keys: list[Hashable] | None = None,
        origin: Callable[[int], str] | None = None,
    ) -> None:
        self.values = values
        self.timestamps = timestamps
        self.keys = keys
        self.origin = origin

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"RecordBatch({self.values!r}, timestamps={self.timestamps!r}, keys={self.keys!r})"


class SideBatch:
    """Records for a side output; travels inside a task only, a channel carries its `batch`."""

    __slots__ = ("batch", "tag")

    def __init__(self, tag: str, batch: RecordBatch) -> None:
        self.tag = tag
        self.batch = batch

    def __repr__(self) -> str:
        return f"SideBatch({self.tag!r}, {self.batch!r})"


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with a timestamp at or below `timestamp` is expected after this."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class WatermarkStatus:
    """Whether the sender takes part in the watermark (Flink: `WatermarkStatus`)."""

    idle: bool


IDLE = WatermarkStatus(idle=True)
ACTIVE = WatermarkStatus(idle=False)
MAX_WATERMARK = Watermark(MAX_TIMESTAMP)


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Separates the records of one checkpoint from those of the next.

    `final` marks the last barrier of a stopping job: after it a task ends without draining.
    """

    checkpoint_id: int
    timestamp_ms: int
    final: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointCancelled:
    """The sender will not send the barrier of this checkpoint."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """The last element of a channel.

    `drained` is true where the input ended by itself (or is being drained): the receiver
    counts its watermark as MAX. It is false after a stop without drain.
    """

    drained: bool = True


StreamElement: TypeAlias = RecordBatch | SideBatch | Watermark | WatermarkStatus
"""What an operator puts out."""

ChannelElement: TypeAlias = (
    RecordBatch | Watermark | WatermarkStatus | CheckpointBarrier | CheckpointCancelled | EndOfInput
)
"""What a channel carries."""
