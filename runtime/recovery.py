"""From a checkpoint to the subtasks of a new attempt: who gets what of the saved state.

The mapping is pure (`RestorePlan`); `restore` opens the state files for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runtime.checkpoint_metadata import CheckpointMetadata, SavedOperator
from runtime.errors import RecoveryError
from runtime.plan import PlannedOperator
from runtime.start_point import LocatedCheckpoint
from statebackends.errors import StateError
from statebackends.keygroups import KeyGroupRange, key_group_range
from statebackends.operator_state_format import RestoredOperatorState
from statebackends.snapshot import RestoredKeyedState, SnapshotFile
from statebackends.storage import StateFile


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Which saved operator each operator of the job restores from, by uid.

    * `new`: names of operators that the checkpoint does not know; they begin without state.
    * `dropped`: saved operators with state that no operator of the job claims.
    * `finished`: operators whose subtasks had all put out their last element.
    """

    operators: Mapping[str, SavedOperator]
    new: tuple[str, ...]
    dropped: tuple[str, ...]
    finished: frozenset[str]

    def keyed_subtasks(self, uid: str, key_groups: KeyGroupRange) -> list[int]:
        """The former subtasks that hold key groups of a range."""
        saved = self.operators.get(uid)
        if saved is None:
            return []
        return [
            index
            for index in range(saved.parallelism)
            if key_group_range(saved.max_parallelism, saved.parallelism, index).intersection(
                key_groups
            )
        ]


def plan_restore(
    metadata: CheckpointMetadata,
    operators: Iterable[PlannedOperator],
    stateful: Collection[str],
    *,
    label: str,
    allow_non_restored_state: bool = False,
) -> RestorePlan:
    """Matches operators by uid; `stateful` are the saved uids that have state at all.

    Raises `RecoveryError` for two operators with one uid, for a changed max parallelism, and
    for saved state that nobody claims unless that is allowed (Flink: `StateAssignmentOperation`,
    `Checkpoints.loadAndValidateCheckpoint`).
    """
    saved = {operator.uid: operator for operator in metadata.operators}
    planned = list(operators)
    for uid, count in Counter(operator.uid for operator in planned).items():
        if count > 1:
            names = [operator.name for operator in planned if operator.uid == uid]
            raise RecoveryError(
                f"the uid {uid!r} is used by {count} operators ({', '.join(map(repr, names))});"
                " state is found by uid, so each needs its own"
            )
    for operator in planned:
        former = saved.get(operator.uid)
        if former is not None and former.uid in stateful:
            _check_max_parallelism(operator, former, label)
    claimed = {operator.uid for operator in planned}
    unclaimed = [uid for uid in (*saved, *metadata.enumerators) if uid not in claimed]
    dropped = tuple(dict.fromkeys(uid for uid in unclaimed if uid in stateful))
    if dropped and not allow_non_restored_state:
        names = [f"{uid!r}" + (f" ({saved[uid].name})" if uid in saved else "") for uid in dropped]
        raise RecoveryError(
            f"{label} holds state of {', '.join(names)}, and the job has no operator of that uid;"
            " give the operator its former uid, or start with --allow-non-restored-state to drop"
            " that state"
        )
    return RestorePlan(
        {uid: saved[uid] for uid in (operator.uid for operator in planned) if uid in saved},
        tuple(operator.name for operator in planned if operator.uid not in saved),
        dropped,
        frozenset(uid for uid in claimed if uid in saved and saved[uid].finished),
    )


def _check_max_parallelism(operator: PlannedOperator, former: SavedOperator, label: str) -> None:
    if operator.max_parallelism != former.max_parallelism:
        raise RecoveryError(
            f"operator {operator.name!r} (uid {operator.uid}) has max parallelism"
            f" {operator.max_parallelism}, its state in {label} was written with"
            f" {former.max_parallelism}; the max parallelism of a job cannot change, set it back"
            f" to {former.max_parallelism}"
        )


class RestoredCheckpoint:
    """The state that an attempt starts from; every state file is open, nothing is read yet."""

    def __init__(
        self,
        metadata: CheckpointMetadata,
        plan: RestorePlan,
        files: Mapping[StateFile, SnapshotFile],
    ) -> None:
        self.plan = plan
        self.metadata = metadata
        self._files = files

    @property
    def checkpoint_id(self) -> int:
        """The checkpoint it is from."""
        return self.metadata.checkpoint_id

    @property
    def enumerators(self) -> Mapping[str, bytes]:
        """The states of the split enumerators, by the uid of their source."""
        return self.metadata.enumerators

    def keyed(self, uid: str, key_groups: KeyGroupRange) -> list[RestoredKeyedState]:
        """The keyed state of the former subtasks whose key groups meet the range."""
        found = []
        for index in self.plan.keyed_subtasks(uid, key_groups):
            file = self._file(uid, index)
            state = None if file is None else file.keyed(uid)
            if state is not None:
                found.append(state)
        return found

    def operator_state(self, uid: str) -> list[RestoredOperatorState | None] | None:
        """The operator state of all former subtasks by index; None: the operator is new."""
        saved = self.plan.operators.get(uid)
        if saved is None:
            return None
        files = [self._file(uid, index) for index in range(saved.parallelism)]
        return [None if file is None else file.operator_state(uid) for file in files]

    def finished(self, uid: str) -> bool:
        """Whether all former subtasks of the operator had finished."""
        return uid in self.plan.finished

    def describe(self) -> Sequence[str]:
        """What the user should know of the restore, a sentence each."""
        lines = []
        if self.plan.new:
            lines.append(f"begin without state, being new: {', '.join(self.plan.new)}")
        if self.plan.dropped:
            lines.append(f"state dropped, as nobody claims it: {', '.join(self.plan.dropped)}")
        if self.plan.finished:
            # By name: a uid that the user did not give is a hash.
            names = sorted(self.plan.operators[uid].name for uid in self.plan.finished)
            lines.append(f"had finished: {', '.join(names)}")
        return lines

    def close(self) -> None:
        """Closes the state files; what was read stays valid."""
        for file in self._files.values():
            file.close()

    def _file(self, uid: str, index: int) -> SnapshotFile | None:
        file = self.plan.operators[uid].files[index]
        return None if file is None else self._files[file]


async def restore(
    checkpoint: LocatedCheckpoint,
    operators: Iterable[PlannedOperator],
    *,
    allow_non_restored_state: bool = False,
) -> RestoredCheckpoint:
    """Opens a checkpoint for the operators of a plan.

    Raises `RecoveryError` as `plan_restore` does, and for a file that is damaged or of another
    format.
    """
    metadata = checkpoint.metadata
    files: dict[StateFile, SnapshotFile] = {}
    for file in metadata.files():
        try:
            files[file] = await checkpoint.storage.open(metadata.checkpoint_id, file)
        except StateError as error:
            raise RecoveryError(f"{checkpoint.label} cannot be restored: {error}") from error
    stateful = {uid for opened in files.values() for uid in opened.operators}
    stateful.update(metadata.enumerators)
    plan = plan_restore(
        metadata,
        operators,
        stateful,
        label=checkpoint.label,
        allow_non_restored_state=allow_non_restored_state,
    )
    return RestoredCheckpoint(metadata, plan, files)
