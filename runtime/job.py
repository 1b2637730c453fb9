"""One run of a job: attempts until one ends well, or no new start is allowed any more."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from operators.graph import StreamGraph
from runtime import process_settings
from runtime.attempt import Attempt
from runtime.checkpoint import CheckpointCoordinator
from runtime.checkpoint_messages import AttemptId
from runtime.clock import turn_seconds
from runtime.config import JobConfig
from runtime.errors import ConfigurationError, JobExecutionError, RecoveryError
from runtime.failure_kinds import describe_failure, is_permanent, job_failure, user_cause
from runtime.failure_report import format_failure
from runtime.job_folder import FileSystemJobFolder, JobFolder, RunStatus
from runtime.job_result import JobStatistics, JobStatus
from runtime.joint_fork import ChildSlots
from runtime.plan import ExecutionPlan, build_plan
from runtime.recovery import RestoredCheckpoint, restore
from runtime.restart import RestartStrategy, restart_strategy
from runtime.start_point import StartPoint, choose_start, restart_point
from runtime.statistics import count_records, lowest_sink_watermark, warn_of_late_records
from runtime.supervisor import StuckTasksError
from runtime.thread_work import THREAD_WORK
from runtime.turn import LoopTurn
from runtime.watchdog import BlockedLoopWatchdog
from statebackends.backend import KeyedStateBackendFactory
from statebackends.clock import Clock, ScheduledCall
from statebackends.errors import CheckpointStorageError
from statebackends.hash_map import HashMapStateBackend

logger = logging.getLogger(__name__)


class JobRun:
    """Everything about one `execute`: plan, job folder, attempts, restarts, stop.

    `clock_factory` makes the clock of an attempt; `open_folder` where the job keeps its
    checkpoints (by default the folder named after it under the configured directory).
    """

    def __init__(
        self,
        graph: StreamGraph,
        config: JobConfig,
        clock_factory: Callable[[], Clock],
        *,
        open_folder: Callable[[], JobFolder] | None = None,
        seed: int | None = None,
        turn_factory: Callable[[Clock], LoopTurn] | None = None,
        watched: bool = True,
    ) -> None:
        self._graph = graph
        self._config = config
        self._clock_factory = clock_factory
        self._open_folder = open_folder or self._default_folder
        self._random = random.Random(seed)
        self._turn_factory = turn_factory or self._default_turn
        self._watched = watched
        self._clock: Clock | None = None
        self._attempt: Attempt | None = None
        self._strategy: RestartStrategy | None = None
        self._status = JobStatus.CREATED
        self._stopping = False
        self._ran = False
        self._stop_timeout: ScheduledCall | None = None
        self._stop_wanted = asyncio.Event()
        self._restarts = 0
        self._records_before = (0, 0)
        self._last_checkpoint: tuple[int, int] | None = None
        self._stopped_with: int | None = None
        self._slots = ChildSlots()
        detect = config.state.detect_late_changes
        heap = HashMapStateBackend(detect_late_changes=detect)
        self._backend: KeyedStateBackendFactory = heap.create_keyed_state_backend

    # -- requests, from the loop's thread -------------------------------------------------------

    def request_stop(self) -> None:
        """Stops cleanly: with checkpoints on after a final one, else at once."""
        if self._stopping or self._status.is_terminal_state():
            return
        self._stopping = True
        self._status = JobStatus.CANCELLING
        self._stop_wanted.set()
        attempt = self._attempt
        if attempt is None:
            return
        if attempt.driver is None or not attempt.running:
            attempt.cancel()
            return
        clock, timeout_ms = self._clock, self._config.stop.stop_timeout_ms
        assert clock is not None
        # Before all else: it ends the job also if what follows fails.
        self._stop_timeout = clock.call_at(clock.now_ms() + timeout_ms, self._stop_timed_out)
        attempt.stop_with_checkpoint()

    def cancel(self) -> None:
        """Ends the job without a final checkpoint."""
        self._stopping = True
        self._stop_wanted.set()
        if not self._status.is_terminal_state():
            self._status = JobStatus.CANCELLING
        if self._attempt is not None:
            self._attempt.cancel()

    def statistics(self) -> JobStatistics:
        """The figures of this moment; clients ask from their own threads."""
        attempt = self._attempt
        records_in, records_out = self._records_before
        watermark = None
        if attempt is not None:
            now_in, now_out = count_records(attempt.nodes)
            records_in, records_out = records_in + now_in, records_out + now_out
            watermark = lowest_sink_watermark(attempt.deployment.tasks.values())
        last = self._last_checkpoint
        return JobStatistics(
            status=self._status,
            records_in=records_in,
            records_out=records_out,
            watermark_ms=watermark,
            last_checkpoint_id=None if last is None else last[0],
            last_checkpoint_ms=None if last is None else last[1],
            restarts=self._restarts,
        )

    # -- the run --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Runs the job to its end.

        Raises:
            JobExecutionError: the job failed and is not started again.
            ConfigurationError: graph or settings cannot work.
            RecoveryError, StateError: what it should start from cannot be used.
        """
        config = self._config
        plan = build_plan(
            self._graph,
            parallelism=config.parallelism,
            max_parallelism=config.max_parallelism,
            chaining=config.chaining,
        )
        checkpoints = config.checkpoints.enabled
        self._strategy = restart_strategy(config.restart, self._random, checkpoints=checkpoints)
        if not checkpoints and config.recovery.path is None:
            await self._run_attempts(plan, None, None, 1)
            return
        folder = self._open_folder()
        try:
            start = await choose_start(folder, config.recovery)
            self._tell(start)
            epoch = folder.begin_run()
            coordinator = None
            if checkpoints:
                logger.info("job %r keeps its checkpoints in %s", config.name, folder.label)
                coordinator = CheckpointCoordinator(
                    config.checkpoints,
                    start.first_checkpoint_id,
                    await folder.storage.checkpoints(),
                )
            try:
                await self._run_attempts(plan, (coordinator, folder), start, epoch)
            finally:
                self._record_end(folder)
        finally:
            folder.close()

    async def _run_attempts(
        self,
        plan: ExecutionPlan,
        checkpoints: tuple[CheckpointCoordinator | None, JobFolder] | None,
        start: StartPoint | None,
        epoch: int,
    ) -> None:
        """One attempt after the other, each from the newest checkpoint, as the strategy allows."""
        strategy = self._strategy
        assert strategy is not None
        number = 0
        while not self._stop_wanted_now():
            number += 1
            try:
                await self._run_attempt(plan, checkpoints, start, AttemptId(epoch, number))
                stopped = self._stop_wanted_now()
                self._end(JobStatus.CANCELED if stopped else JobStatus.FINISHED)
                return
            except (ConfigurationError, RecoveryError):
                self._end(JobStatus.FAILED)
                raise
            except StuckTasksError as error:
                # What did not end may still write: no new start beside it in this process.
                self._end(JobStatus.FAILED)
                raise self._failed(error) from error
            except Exception as error:
                if self._stop_wanted_now():
                    logger.warning("while stopping: %s", describe_failure(error))
                    break
                strategy.failed(self._now_ms())
                if not self._may_restart(plan, error):
                    self._end(JobStatus.FAILED)
                    raise self._failed(error) from user_cause(error)
                logger.error("%s", format_failure(self._failed(error)))  # no name: it holds state
            self._status = JobStatus.RESTARTING
            self._restarts += 1
            logger.warning(
                "job %r starts again in %d ms (%s)",
                self._config.name,
                strategy.delay_ms,
                strategy.verdict,
            )
            await self._wait(strategy.delay_ms)
            process_settings.collect_old_garbage()
            if checkpoints is not None and self._last_checkpoint is not None:
                assert start is not None
                start = await restart_point(checkpoints[1], start, self._last_checkpoint[0])
                self._tell(start)
        self._end(JobStatus.CANCELED)

    async def _run_attempt(
        self,
        plan: ExecutionPlan,
        checkpoints: tuple[CheckpointCoordinator | None, JobFolder] | None,
        start: StartPoint | None,
        attempt: AttemptId,
    ) -> None:
        clock = self._clock = self._clock_factory()
        restored: RestoredCheckpoint | None = None
        if start is not None and start.checkpoint is not None:
            restored = await restore(
                start.checkpoint,
                plan.operators,
                allow_non_restored_state=self._config.recovery.allow_non_restored_state,
            )
            for line in restored.describe():
                logger.info("job %r: %s", self._config.name, line)
            if self._stopping:
                # The stop came while there was no attempt that could have been told.
                restored.close()
                return
        driven = None
        if checkpoints is not None and checkpoints[0] is not None:
            driven = (checkpoints[0], checkpoints[1])
        self._attempt = Attempt(
            plan,
            self._config,
            attempt,
            observer=self,
            clock=clock,
            turn=self._turn_factory(clock),
            backend=self._backend,
            slots=self._slots,
            restored=restored,
            checkpoints=driven,
        )
        if self._stopping:
            # The stop came while the state was being restored.
            self._attempt.cancel()
        else:
            self._status = JobStatus.RUNNING
        try:
            with BlockedLoopWatchdog(clock, self._attempt, enabled=self._watched):
                await self._attempt.run()
        finally:
            self._ran = self._ran or self._attempt.ran
            counted = count_records(self._attempt.nodes)
            before = self._records_before
            self._records_before = (before[0] + counted[0], before[1] + counted[1])
            warn_of_late_records(self._config.name, self._attempt.nodes)
            self._attempt = None
            if self._stop_timeout is not None:
                self._stop_timeout.cancel()
            if restored is not None:
                restored.close()

    # -- AttemptObserver ------------------------------------------------------------------------

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """The next failure counts as the first one again."""
        assert self._strategy is not None
        self._strategy.checkpoint_completed()
        self._last_checkpoint = (checkpoint_id, self._now_ms())
        logger.info("checkpoint %d is complete", checkpoint_id)

    def final_checkpoint_ended(self, checkpoint_id: int | None, reason: str) -> None:
        """Says what the job can go on from."""
        newest = None if self._last_checkpoint is None else self._last_checkpoint[0]
        if checkpoint_id is None:
            logger.warning(
                "job %r stops without a final checkpoint (%s); the newest is %s",
                self._config.name,
                reason,
                newest,
            )
        else:
            self._stopped_with = checkpoint_id
            logger.info("job %r stops with checkpoint %d", self._config.name, checkpoint_id)

    def _stop_timed_out(self) -> None:
        if self._attempt is not None and self._stopped_with is None:
            newest = self._last_checkpoint[0] if self._last_checkpoint else "not of this run"
            logger.warning(
                "job %r did not stop within %d ms and leaves without a final checkpoint; the"
                " newest is %s (riverrun.stop.timeout sets how long to wait)",
                self._config.name,
                self._config.stop.stop_timeout_ms,
                newest,
            )
            self._attempt.cancel()

    # -- details --------------------------------------------------------------------------------

    def _default_folder(self) -> JobFolder:
        try:
            return FileSystemJobFolder(self._config.checkpoints.directory, self._config.name)
        except CheckpointStorageError as error:
            raise ConfigurationError(
                f"--checkpoint-dir (execution.checkpointing.dir): {error}; give a local directory"
                " that can be written to"
            ) from error

    def _default_turn(self, clock: Clock) -> LoopTurn:
        seconds = self._config.flow.turn_budget_ms / 1000
        return LoopTurn(
            asyncio.get_running_loop(), turn_seconds, seconds=seconds, on_turn=_turn_ended
        )

    def _stop_wanted_now(self) -> bool:
        return self._stopping

    def _now_ms(self) -> int:
        assert self._clock is not None
        return self._clock.now_ms()

    def _end(self, status: JobStatus) -> None:
        self._status = status

    async def _wait(self, delay_ms: int) -> None:
        """Waits out the delay of a restart, or until a stop is wanted."""
        assert self._clock is not None
        timer = self._clock.call_at(self._clock.now_ms() + delay_ms, self._stop_wanted.set)
        await self._stop_wanted.wait()
        timer.cancel()
        if not self._stopping:
            self._stop_wanted.clear()

    def _may_restart(self, plan: ExecutionPlan, error: Exception) -> bool:
        strategy = self._strategy
        assert strategy is not None
        if not strategy.can_restart or is_permanent(user_cause(error), ran=self._ran):
            return False
        for operator in plan.operators:
            if operator.source is not None and not operator.source.replayable:
                logger.error(
                    "job %r is not started again: source %r reads an iterator, which cannot be"
                    " read a second time; use a sequence or a replayable source",
                    self._config.name,
                    operator.name,
                )
                return False
        return True

    def _record_end(self, folder: JobFolder) -> None:
        try:
            folder.end_run(_RUN_STATUS.get(self._status, RunStatus.FAILED))
        except CheckpointStorageError as error:
            # The run's own outcome counts; the next start will ask from where to begin.
            logger.warning("how job %r ended is not recorded: %s", self._config.name, error)

    def _tell(self, start: StartPoint) -> None:
        for skipped in start.skipped:
            logger.warning(
                "job %r passes over checkpoint %d: %s",
                self._config.name,
                skipped.checkpoint_id,
                skipped.reason,
            )
        logger.info("job %r %s", self._config.name, start.text)

    def _failed(self, error: Exception) -> JobExecutionError:
        return job_failure(self._config.name, error)


def _turn_ended() -> None:
    process_settings.turn_ended()
    THREAD_WORK.pause()


_RUN_STATUS = {
    JobStatus.FINISHED: RunStatus.FINISHED,
    JobStatus.CANCELED: RunStatus.STOPPED,
    JobStatus.FAILED: RunStatus.FAILED,
}
