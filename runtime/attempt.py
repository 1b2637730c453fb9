"""One attempt of a job: deployed, opened, supervised, closed; never used twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import Protocol

from operators.elements import CheckpointBarrier
from runtime.chain import ChainNode
from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_driver import CheckpointDriver
from runtime.checkpoint_messages import AttemptId, Decline, SubtaskId
from runtime.config import JobConfig
from runtime.deployment import AttemptListener, Deployment, DeploymentSettings, deploy
from runtime.enumerators import SplitEnumerators, discovery_failure
from runtime.errors import failure_of, summary
from runtime.job_folder import JobFolder
from runtime.joint_fork import ChildSlots
from runtime.plan import ExecutionPlan, PlannedOperator
from runtime.process_settings import freeze_started_objects
from runtime.recovery import RestoredCheckpoint
from runtime.subtask_checkpoints import CheckpointReplies
from runtime.supervisor import Supervisor
from runtime.task import Task
from runtime.turn import LoopTurn
from statebackends.backend import KeyedStateBackendFactory
from statebackends.clock import Clock

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
"""How long all operators of an attempt, together, may take to close, and all enumerators."""


class AttemptObserver(Protocol):
    """The job, as its attempt sees it."""

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """A checkpoint of this attempt is durably complete."""

    def final_checkpoint_ended(self, checkpoint_id: int | None, reason: str) -> None:
        """The last checkpoint of a stop is complete, or (None) there is none, for `reason`."""


class Attempt(AttemptListener):
    """Runs the tasks of a plan until they end, one fails, or it is cancelled."""

    def __init__(
        self,
        plan: ExecutionPlan,
        config: JobConfig,
        attempt: AttemptId,
        *,
        observer: AttemptObserver,
        clock: Clock,
        turn: LoopTurn,
        backend: KeyedStateBackendFactory,
        slots: ChildSlots,
        restored: RestoredCheckpoint | None = None,
        checkpoints: tuple[CheckpointCoordinator, JobFolder] | None = None,
    ) -> None:
        self.id = attempt
        self.supervisor = Supervisor(
            cancellation_seconds=config.stop.cancellation_timeout_ms / 1000
        )
        self.deployment = Deployment()
        self.running = False
        """All operators are open."""
        self._opened_all = False
        self._discovered = False
        self._plan = plan
        self._observer = observer
        self._restored = restored
        self._opened = 0
        self._enumerators = SplitEnumerators(
            plan.vertices,
            clock,
            self,
            None if restored is None else restored.enumerators,
            _never_finished if restored is None else restored.finished,
        )
        self.driver: CheckpointDriver | None = None
        if checkpoints is not None:
            coordinator, folder = checkpoints
            self.driver = CheckpointDriver(
                job_name=config.name,
                attempt=attempt,
                coordinator=coordinator,
                folder=folder,
                vertices=plan.vertices,
                enumerators=self._enumerators,
                control=self,
                clock=clock,
            )
        self._settings = DeploymentSettings(
            job_name=config.name,
            attempt=attempt,
            clock=clock,
            turn=turn,
            backend=backend,
            spawn=self._spawn_background,
            auto_watermark_interval_ms=config.auto_watermark_interval_ms,
            job_parameters=config.global_job_parameters,
            channel_capacity=config.flow.channel_capacity_records,
            records_max=config.flow.batch_records_max,
            copy_records=not config.object_reuse,
            storage=None if checkpoints is None else checkpoints[1].storage,
            inline_entries_max=config.state.fork_entries_min,
            slots=slots,
        )

    @property
    def nodes(self) -> list[ChainNode]:
        """The operators of all tasks."""
        return [node for task in self.deployment.tasks.values() for node in task.nodes]

    @property
    def ran(self) -> bool:
        """Whether it has got through its start: all is open and connected."""
        return self._opened_all and self._discovered

    async def run(self) -> None:
        """Returns when every task has ended (or after `cancel`); raises the first failure."""
        try:
            self.deployment = deploy(self._plan, self._settings, self, self._restored)
            for task in self.deployment.tasks.values():
                self.supervisor.spawn(self._run_task(task), task.name, context=task.context)
            self.supervisor.spawn(
                self._run_enumerators(),
                "split enumerators",
                background=True,
                context=self._enumerators.context,
            )
            if self.driver is not None:
                self.supervisor.spawn(self.driver.run(), "checkpoints", background=True)
            await self.supervisor.run()
        finally:
            await self._close()

    def cancel(self) -> None:
        """Ends the attempt at once."""
        self.supervisor.request_stop()

    def stop_with_checkpoint(self) -> None:
        """Sources read no more; a final checkpoint follows, and the end with it."""
        assert self.driver is not None
        for task in self.deployment.tasks.values():
            task.stop_source()
        self.driver.request_final()

    def _spawn_background(
        self, coroutine: Coroutine[object, object, None], context: Context | None = None
    ) -> asyncio.Task[None]:
        return self.supervisor.spawn(coroutine, background=True, context=context)

    async def _run_task(self, task: Task) -> None:
        await task.open()
        self._opened += 1
        if self._opened == len(self.deployment.tasks):
            self.running = self._opened_all = True
            freeze_started_objects()
            if self.driver is not None:
                self.driver.start()
                for other in self.deployment.tasks.values():
                    if other.ended:
                        self.driver.subtask_finished(other.subtask)
        await task.run()

    async def _run_enumerators(self) -> None:
        await self._enumerators.start()
        self._discovered = True
        for operator, run in self._enumerators.runs():
            name = f"split enumerator of {operator.name}"
            self.supervisor.spawn(
                self._run_enumerator(operator, run),
                name,
                background=True,
                context=self._enumerators.context,
            )

    async def _run_enumerator(
        self, operator: PlannedOperator, run: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        if (error := await failure_of(run)) is not None:
            self.enumerator_failed(operator, error)

    async def _close(self) -> None:
        """Closes what was opened, in bounded time, whatever happened before."""
        self.running = False
        await self._close_within("operators", self._close_tasks)
        await self._close_within("split enumerators", self._close_enumerators)
        if self.driver is not None:
            # Not bounded: which checkpoint is the newest must be known before the next attempt,
            # and each write to storage has a bound of its own (the disk answers or fails).
            await self.driver.close()
        for backend in self.deployment.backends:
            backend.close()

    async def _close_enumerators(self) -> None:
        closing = self._enumerators.close()
        await asyncio.get_running_loop().create_task(closing, context=self._enumerators.context)

    async def _close_tasks(self) -> None:
        loop = asyncio.get_running_loop()
        tasks = self.deployment.tasks.values()
        closing = [loop.create_task(each.close(), context=each.context) for each in tasks]
        for errors in await asyncio.gather(*closing):
            for error in errors:
                logger.error("%s: %s", error, error.__cause__)

    @staticmethod
    async def _close_within(
        what: str, close: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                error = await failure_of(close)
        except TimeoutError:
            logger.error("closing the %s took longer than %g s", what, CLOSE_SECONDS)
            return
        if error is not None:
            logger.error("closing the %s: %s", what, summary(error))

    # -- SplitDelivery -------------------------------------------------------------------------

    def add_splits(self, subtask: SubtaskId, splits: Sequence[object]) -> None:
        """New splits for a source subtask."""
        self.deployment.tasks[subtask].tell_source(lambda source: source.add_splits(splits))

    def no_more_splits(self, subtask: SubtaskId) -> None:
        """A source subtask will get no more splits."""
        self.deployment.tasks[subtask].tell_source(lambda source: source.no_more_splits())

    def enumerator_failed(self, source: PlannedOperator, error: BaseException) -> None:
        """The attempt fails with the error of a source's enumerator."""
        self.supervisor.fail(discovery_failure(source, error))

    # -- AttemptListener -----------------------------------------------------------------------

    def replies(self, subtask: SubtaskId) -> CheckpointReplies:
        """Where a subtask's parts of checkpoints are reported."""
        assert self.driver is not None
        return self.driver.replies(subtask)

    def finished(self, task: Task) -> None:
        """A task has put out its last."""
        if self.driver is not None and self.running:
            self.driver.subtask_finished(task.subtask)

    def checkpoint_declined(self, task: Task, checkpoint_id: int, reason: str) -> None:
        """A task will not take part in a checkpoint."""
        if self.driver is not None:
            self.driver.declined(Decline(self.id, checkpoint_id, task.subtask, reason))

    # -- TaskControl ---------------------------------------------------------------------------

    def trigger_checkpoint(
        self, subtask: SubtaskId, checkpoint_id: int, timestamp_ms: int, *, final: bool
    ) -> None:
        """Begins a checkpoint at a subtask."""
        barrier = CheckpointBarrier(checkpoint_id, timestamp_ms, final)
        self.deployment.tasks[subtask].trigger_checkpoint(barrier)

    def notify_complete(self, subtask: SubtaskId, checkpoint_id: int) -> None:
        """A checkpoint is durably complete."""
        self.deployment.tasks[subtask].notify_complete(checkpoint_id)

    def notify_aborted(self, subtask: SubtaskId, checkpoint_id: int) -> None:
        """A checkpoint will never complete."""
        self.deployment.tasks[subtask].notify_aborted(checkpoint_id)

    def release(self, subtask: SubtaskId) -> None:
        """A finished subtask may leave."""
        self.deployment.tasks[subtask].release()

    def final_checkpoint_ended(self, checkpoint_id: int | None, reason: str) -> None:
        """With the final checkpoint in place all tasks may leave; without it they are cancelled."""
        self._observer.final_checkpoint_ended(checkpoint_id, reason)
        if checkpoint_id is None:
            self.cancel()
            return
        for task in self.deployment.tasks.values():
            task.release()

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """The job has got somewhere."""
        self._observer.checkpoint_completed(checkpoint_id)

    def fail_job(self, error: BaseException) -> None:
        """The attempt fails."""
        self.supervisor.fail(error)


def _never_finished(_: str) -> bool:
    return False
