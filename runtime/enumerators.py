"""The split enumerators of a job's sources, beside the checkpoint coordinator.

An enumerator's state is cut before the barriers start. A split that is assigned after that cut
must not reach its reader before the reader's own cut: else a restore would find the split with
the reader while the enumerator has never heard of it, and would assign it again. So assignments
wait here, per reader and in order, until every checkpoint cut before them has passed the reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from typing import Protocol

from operators.connector_results import as_failure, awaited, wrong_object
from operators.source import SplitEnumerator, SplitEnumeratorContext
from runtime.checkpoint_messages import SubtaskId
from runtime.errors import OperatorFailure, failure_of
from runtime.plan import PlannedOperator, Vertex
from statebackends.clock import Clock


class SplitDelivery(Protocol):
    """Hands what enumerators decide to the source subtasks, in order with checkpoint triggers."""

    def add_splits(self, subtask: SubtaskId, splits: Sequence[object]) -> None:
        """New splits of one reader."""

    def no_more_splits(self, subtask: SubtaskId) -> None:
        """The reader will get no more."""

    def enumerator_failed(self, source: PlannedOperator, error: BaseException) -> None:
        """The job fails with this error of a source's enumerator."""


class _HeldBack:
    """What waits for one reader, and the checkpoints that have to pass it first."""

    __slots__ = ("checkpoints", "deliveries")

    def __init__(self) -> None:
        self.checkpoints: set[int] = set()
        self.deliveries: deque[tuple[frozenset[int], Callable[[], None]]] = deque()

    def deliver(self, delivery: Callable[[], None]) -> None:
        """Delivers at once, or after what must come before it."""
        if self.checkpoints or self.deliveries:
            self.deliveries.append((frozenset(self.checkpoints), delivery))
        else:
            delivery()

    def passed(self, checkpoint_id: int) -> None:
        """A checkpoint no longer holds anything back."""
        self.checkpoints.discard(checkpoint_id)
        while self.deliveries and not self.deliveries[0][0] & self.checkpoints:
            _, delivery = self.deliveries.popleft()
            delivery()


class EnumeratorHost(SplitEnumeratorContext):
    """One source's enumerator and what it sees of the job."""

    def __init__(
        self, vertex: Vertex, clock: Clock, delivery: SplitDelivery, state: bytes | None
    ) -> None:
        self.operator = vertex.head
        self.parallelism = vertex.parallelism
        self.clock = clock
        self.restored = state is not None
        self._delivery = delivery
        self._readers = [SubtaskId(vertex.id, index) for index in range(vertex.parallelism)]
        self._held = {reader: _HeldBack() for reader in self._readers}
        self.enumerator = self._create(state)

    def _create(self, state: bytes | None) -> SplitEnumerator | None:
        source = self.operator.source
        enumerator: object = None if source is None else source.create_enumerator(self)
        if enumerator is None:
            return None
        if not isinstance(enumerator, SplitEnumerator):
            wanted = "a SplitEnumerator or None"
            raise wrong_object(source, "create_enumerator", wanted, enumerator)
        if state is not None:
            enumerator.restore_state(state)
        return enumerator

    # -- what the enumerator calls --------------------------------------------------------------

    def assign_splits(self, subtask_index: int, splits: Sequence[object]) -> None:
        """Sends splits to a reader, in order, not before the cuts that came first."""
        if not 0 <= subtask_index < self.parallelism:
            raise ValueError(
                f"{self.operator.name!r} assigns splits to subtask {subtask_index} of"
                f" {self.parallelism}"
            )
        reader, chosen = self._readers[subtask_index], list(splits)
        self._held[reader].deliver(lambda: self._delivery.add_splits(reader, chosen))

    def signal_no_more_splits(self) -> None:
        """Tells every reader, behind what was assigned to it before."""
        for reader, held in self._held.items():
            held.deliver(lambda reader=reader: self._delivery.no_more_splits(reader))  # type: ignore[misc]  # mypy cannot infer a lambda's default

    def fail(self, error: BaseException) -> None:
        """Fails the job."""
        self._delivery.enumerator_failed(self.operator, as_failure(error))

    # -- what the driver calls ------------------------------------------------------------------

    def cut(self, checkpoint_id: int) -> bytes | None:
        """The state; later assignments wait until the checkpoint has passed their reader."""
        if self.enumerator is None:
            return None
        state = self.enumerator.snapshot_state()
        for held in self._held.values():
            held.checkpoints.add(checkpoint_id)
        return state

    def passed(self, checkpoint_id: int, reader: SubtaskId) -> None:
        """The reader has taken its own cut."""
        held = self._held.get(reader)
        if held is not None:
            held.passed(checkpoint_id)

    def ended(self, checkpoint_id: int) -> None:
        """The checkpoint is complete or aborted: it holds nothing back any more."""
        for held in self._held.values():
            held.passed(checkpoint_id)

    @property
    def holds_back(self) -> bool:
        """Whether a decision is in the enumerator's state and not yet with its reader."""
        return any(held.deliveries for held in self._held.values())


def discovery_failure(source: PlannedOperator, error: BaseException) -> OperatorFailure:
    """The failure of a source whose enumerator failed with `error`."""
    failure = OperatorFailure(
        operator=source.name,
        uid=source.uid,
        subtask_index=0,
        parallelism=source.parallelism,
        doing="discovering splits",
    )
    failure.__cause__ = error
    return failure


async def _start(enumerator: SplitEnumerator) -> None:
    await awaited(enumerator.start(), enumerator, "start")


class SplitEnumerators:
    """All enumerators of one attempt, by the uid of their source.

    `states` are those of the restored checkpoint. A source without enumerator has no host.
    Order of calls: `start`, then `run` of each host under the job's supervisor, `close` always.
    """

    def __init__(
        self,
        vertices: Iterable[Vertex],
        clock: Clock,
        delivery: SplitDelivery,
        states: Mapping[str, bytes] | None = None,
        finished: Callable[[str], bool] = lambda _: False,
    ) -> None:
        restored = states or {}
        self.context: Context = copy_context()
        """In which `start`, the runs and `close` are to be awaited: that of all enumerators."""
        self.hosts: dict[str, EnumeratorHost] = {}
        for vertex in vertices:
            uid = vertex.head.uid
            if vertex.head.source is None:
                continue
            # The enumerator of a finished source stays for its state alone; see `start`.
            host = EnumeratorHost(vertex, clock, delivery, restored.get(uid))
            if host.enumerator is not None:
                self.hosts[uid] = host
        self._idle = {uid for uid in self.hosts if finished(uid)}

    async def start(self) -> None:
        """The first discoveries, one after the other; those of finished sources are left out.

        Raises `OperatorFailure` around what an enumerator raised.
        """
        for uid, enumerator in self._active():
            if (error := await failure_of(_start, enumerator)) is not None:
                raise discovery_failure(self.hosts[uid].operator, error) from error

    def runs(self) -> list[tuple[PlannedOperator, Callable[[], Coroutine[object, object, None]]]]:
        """The `run` coroutine functions of the enumerators, for the supervisor to await."""
        return [(self.hosts[uid].operator, enumerator.run) for uid, enumerator in self._active()]

    async def close(self) -> None:
        """Closes every enumerator; the first failure is raised after all were tried."""
        failures: list[BaseException] = []
        for host in self.hosts.values():
            if host.enumerator is None:
                continue
            if (error := await failure_of(host.enumerator.close)) is not None:
                failures.append(error)
        if failures:
            raise failures[0]

    def cut(self, checkpoint_id: int) -> dict[str, bytes]:
        """The states of all enumerators at the cut of a checkpoint."""
        states = ((uid, host.cut(checkpoint_id)) for uid, host in self.hosts.items())
        return {uid: state for uid, state in states if state is not None}

    def passed(self, checkpoint_id: int, reader: SubtaskId) -> None:
        """A source subtask has taken its own cut."""
        for host in self.hosts.values():
            host.passed(checkpoint_id, reader)

    def ended(self, checkpoint_id: int) -> None:
        """A checkpoint is complete or aborted."""
        for host in self.hosts.values():
            host.ended(checkpoint_id)

    @property
    def hold_back(self) -> bool:
        """Whether an assignment still waits; the next cut has to wait with it."""
        return any(host.holds_back for host in self.hosts.values())

    def _active(self) -> list[tuple[str, SplitEnumerator]]:
        return [
            (uid, host.enumerator)
            for uid, host in self.hosts.items()
            if host.enumerator is not None and uid not in self._idle
        ]
