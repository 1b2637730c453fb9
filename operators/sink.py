"""Contracts of a sink (Flink: Sink V2, FLIP-143): a writer per subtask, a committer if two-phase.

The writer takes batches without waiting into a bounded buffer and sends them in the background;
`has_room` is its back-pressure. At a barrier `flush` makes sure that all that came before is
safe: the acknowledgement of the checkpoint waits for it, later records do not. A sink that
commits (exactly-once) hands out committables at the barrier; they are operator state until
`Committer.commit` returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from operators.metrics import MetricGroup
    from statebackends.clock import Clock

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class SinkWriterContext(Protocol):
    """What a writer gets from its task."""

    subtask_index: int
    parallelism: int
    clock: Clock
    metrics: MetricGroup
    operator_name: str
    restored_checkpoint_id: int | None

    def room_freed(self) -> None:
        """Wakes the task after `has_room` turned true."""

    def fail(self, error: BaseException) -> None:
        """Fails the task: for errors found in the writer's own background tasks."""


class SinkWriter(ABC, Generic[T_contra]):
    """Writes the records of one subtask. All methods are called by the subtask's task."""

    async def start(self) -> None:
        """Connects; bounded in time; errors name address and setting."""

    @abstractmethod
    def write(self, values: Sequence[T_contra], timestamps: Sequence[int | None] | None) -> None:
        """Takes a batch; never waits. Called only while `has_room`, but may overshoot by it."""

    @property
    def has_room(self) -> bool:
        """False while the writer's buffer is at its bound."""
        return True

    async def flush(self, end_of_input: bool) -> None:
        """Waits until everything written before this call is safe; raises what went wrong."""

    def prepare_commit(self, checkpoint_id: int) -> Sequence[bytes]:
        """At the barrier of a two-phase sink: what `Committer.commit` needs to commit."""
        return ()

    async def close(self) -> None:
        """Closes clients within a bounded time."""


class Committer(ABC):
    """Makes committables visible; committing one twice has the effect of once."""

    @abstractmethod
    async def commit(self, committables: Sequence[bytes]) -> None:
        """Commits all of them or raises."""

    async def close(self) -> None:  # noqa: B027 - optional
        """Closes clients within a bounded time."""


class Sink(ABC, Generic[T_contra]):
    """Describes a sink; immutable and shared by all subtasks and attempts."""

    @abstractmethod
    def create_writer(self, context: SinkWriterContext) -> SinkWriter[T_contra]:
        """A writer for one subtask."""

    def create_committer(self) -> Committer | None:
        """The committer of a two-phase sink, None for all others."""
        return None
