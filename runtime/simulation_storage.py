"""The job folder and the checkpoint storage as one simulated process sees them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

from runtime.job_folder import InMemoryJobFolder, RunStatus
from runtime.simulation_faults import FaultKind, SimulatedFailureError, SimulatedProcess
from statebackends.clock import Clock
from statebackends.errors import CheckpointStorageError
from statebackends.snapshot import SnapshotFile
from statebackends.storage import CheckpointStorage, InMemoryCheckpointStorage, StateFile


class SimulatedStorage(CheckpointStorage):
    """Passes points before and after each change of the storage, and takes its time.

    A failure before a change leaves nothing behind; one after the metadata was stored is an
    answer that got lost: the checkpoint exists although it was reported as failed.
    """

    def __init__(
        self,
        inner: InMemoryCheckpointStorage,
        process: SimulatedProcess,
        clock: Clock,
        random: Random,
        *,
        delay_ms: int,
    ) -> None:
        self._inner = inner
        self._process = process
        self._clock = clock
        self._random = random
        self._delay_ms = delay_ms
        self.verified = 0
        """How many checkpoints were looked through, each to be restored."""

    async def write(self, checkpoint_id: int, name: str, data: bytes) -> StateFile:
        """Keeps a state file, or fails."""
        await self._at("write state")
        file = await self._inner.write(checkpoint_id, name, data)
        await self._at("state written")
        return file

    def local_path(self, checkpoint_id: int, name: str) -> Path | None:
        """None: there are no other processes."""
        return self._inner.local_path(checkpoint_id, name)

    async def adopt(self, checkpoint_id: int, name: str) -> StateFile:
        """Fails as there is no local path."""
        return await self._inner.adopt(checkpoint_id, name)

    async def open(self, checkpoint_id: int, file: StateFile) -> SnapshotFile:
        """Opens a state file; the process may die or be stopped meanwhile."""
        await self._wait()
        self._process.pass_point("open state", FaultKind.CRASH, FaultKind.STOP)
        return await self._inner.open(checkpoint_id, file)

    async def complete(self, checkpoint_id: int, metadata: bytes) -> None:
        """Makes the checkpoint exist, or fails, or both."""
        await self._at("store metadata")
        await self._inner.complete(checkpoint_id, metadata)
        await self._at("metadata stored")

    async def checkpoints(self) -> list[int]:
        """The ids of the checkpoints that exist."""
        await self._wait()
        return await self._inner.checkpoints()

    async def highest_id(self) -> int:
        """The highest id that was begun."""
        await self._wait()
        return await self._inner.highest_id()

    async def metadata(self, checkpoint_id: int) -> bytes:
        """The metadata as it was given."""
        await self._wait()
        return await self._inner.metadata(checkpoint_id)

    async def verify(self, checkpoint_id: int, files: Iterable[StateFile]) -> None:
        """Returns if all the files are there as recorded."""
        await self._wait()
        self.verified += 1
        await self._inner.verify(checkpoint_id, files)

    async def discard(self, checkpoint_id: int) -> None:
        """Forgets a checkpoint, or fails."""
        await self._at("discard")
        await self._inner.discard(checkpoint_id)

    async def discard_incomplete(self, below: int) -> list[int]:
        """Forgets what was never completed, or fails."""
        await self._at("discard")
        return await self._inner.discard_incomplete(below)

    async def _at(self, point: str) -> None:
        await self._wait()
        try:
            self._process.pass_point(point)
        except SimulatedFailureError as error:
            raise CheckpointStorageError(f"the simulated disk is full: {error}") from error

    async def _wait(self) -> None:
        self._process.check_alive()
        await self._clock.sleep(self._random.random() * self._delay_ms / 1_000)
        self._process.check_alive()


class SimulatedFolder:
    """A job folder for one process (`JobFolder`); a dead one reaches it no more."""

    def __init__(
        self, inner: InMemoryJobFolder, process: SimulatedProcess, storage: SimulatedStorage
    ) -> None:
        self._inner = inner
        self._process = process
        self.label = inner.label
        self.storage: CheckpointStorage = storage

    def last_status(self) -> RunStatus | None:
        """How the last run went."""
        self._process.check_alive()
        return self._inner.last_status()

    def begin_run(self) -> int:
        """The next epoch."""
        self._process.check_alive()
        return self._inner.begin_run()

    def newest_epoch(self) -> int:
        """The epoch of the newest run."""
        self._process.check_alive()
        return self._inner.newest_epoch()

    def end_run(self, status: RunStatus) -> None:
        """Records how the run went."""
        self._process.check_alive()
        self._inner.end_run(status)

    def close(self) -> None:
        """Nothing is held."""
