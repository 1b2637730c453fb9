"""One attempt of the operators under test: their tasks, from the start to a restore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from operators.elements import StreamElement
from operators.metrics import Counter
from operators.source_operator import SourceOperator
from operators.timers import InternalTimerService
from runtime.chain import ChainNode, Unfinished
from runtime.checkpoint_messages import AttemptId
from runtime.clock import SimulatedClock
from runtime.deployment import DeploymentSettings, deploy
from runtime.mailbox import Mail
from runtime.plan import ExecutionPlan
from runtime.task import Task
from runtime.testing.hand_driven_loop import HandDrivenLoop
from runtime.testing.input import HarnessInput
from runtime.testing.outputs import OutputRecorder
from runtime.testing.pipeline import INPUT_UID
from runtime.testing.snapshot import OperatorSnapshot, SnapshotTaker, opened
from runtime.turn import LoopTurn
from statebackends.backend import KeyedStateBackendFactory
from statebackends.clock import Clock

Place = tuple[str, int, str]
"""Where a timer service is: uid of the operator, subtask, name of the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessSettings:
    """What is the same for all attempts."""

    clock: Clock
    backend: KeyedStateBackendFactory
    auto_watermark_interval_ms: int
    channel_capacity: int
    batch_records: int
    pauses: bool
    through_valve: bool


class HarnessAttempt:
    """The deployed tasks; `run` lets them work until nothing is left to do."""

    def __init__(
        self,
        plan: ExecutionPlan,
        settings: HarnessSettings,
        recorder: OutputRecorder,
        number: int,
        snapshot: OperatorSnapshot | None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._loop = HandDrivenLoop()
        attempt = AttemptId(1, number)
        self._taker = SnapshotTaker(self._loop, attempt)
        restored = None
        if snapshot is not None:
            restored = self._loop.run(opened(snapshot, plan.operators))
        self._deployment = deploy(plan, self._deployment_settings(attempt), self._taker, restored)
        self._tasks = self._deployment.tasks
        tasks = list(self._tasks.values())
        self._tested = [t for t in tasks if not isinstance(t.head.operator, HarnessInput)]
        for task in self._tested:
            # A task begins with small batches, since it does not know how slow user code is.
            task._unit.records = settings.batch_records
            for node in task.nodes:
                recorder.watch_sides(node)
        try:
            for task in reversed(tasks):
                self._loop.run(task.open(), task.context)
            for task in tasks:
                self._loop.spawn(task.run(), task.context)
            self.run()
        except BaseException:
            self.close()
            raise

    def _deployment_settings(self, attempt: AttemptId) -> DeploymentSettings:
        settings = self._settings
        return DeploymentSettings(
            job_name="harness",
            attempt=attempt,
            clock=settings.clock,
            # By a clock that stands still a turn never ends, or has ended before it begins.
            turn=LoopTurn(
                self._loop.as_event_loop(), lambda: 0.0, seconds=0 if settings.pauses else 1
            ),
            backend=settings.backend,
            spawn=self._loop.spawn,
            auto_watermark_interval_ms=settings.auto_watermark_interval_ms,
            channel_capacity=settings.channel_capacity,
            records_max=settings.batch_records,
            storage=self._taker.storage,
        )

    # -- steps ----------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the input has ended."""
        return self._input().ended

    def run(self) -> None:
        """Works until nothing is left to do; raises the first `OperatorFailure`."""
        self._loop.run_until_quiet()

    def give_all(self, elements: Iterable[StreamElement]) -> None:
        """Elements for the input; RuntimeError after its end."""
        source = self._input()
        if source.ended:
            raise RuntimeError("the input has ended")
        for element in elements:
            source.give(element)

    def control(self, element: StreamElement) -> None:
        """A watermark or status, by the way that the settings say."""
        if self._settings.through_valve:
            self.give_all([element])
        else:
            self._on_first_tasks(lambda node: node.push(element))

    def advance_clock(self, now_ms: int) -> None:
        """Moves the clock in one jump."""
        self._simulated_clock().advance_to(now_ms)

    def pass_time(self, end_ms: int) -> None:
        """Moves the clock from one due call to the next, working in between."""
        clock = self._simulated_clock()
        while (due_ms := clock.next_call_ms()) is not None and due_ms <= end_ms:
            clock.advance_to(max(due_ms, clock.now_ms()))
            self.run()
        clock.advance_to(end_ms)

    def end(self) -> None:
        """Ends the input."""
        self._input().end()

    def add_splits(self, splits: Sequence[object], subtask: int) -> None:
        """Assigns splits to one subtask of the sources under test."""
        for source_id, task in self._tasks.items():
            if source_id.index == subtask and self._is_source(task):
                task.tell_source(lambda source: source.add_splits(splits))

    def tell_end(self) -> None:
        """Calls `end_input` of the operators, and nothing else."""
        self._on_first_tasks(lambda node: node.end_input())

    def snapshot(self) -> OperatorSnapshot:
        """Takes a snapshot of all tasks."""
        return self._taker.take(self._tasks, self._plan, self._settings.clock.now_ms())

    def close(self) -> list[Exception]:
        """Closes all tasks; returns what went wrong."""
        self._loop.stop()
        errors: list[Exception] = []
        for task in self._tasks.values():
            errors += self._loop.run(task.close(), task.context)
        for backend in self._deployment.backends:
            backend.close()
        return errors

    # -- looking --------------------------------------------------------------------------------

    def watermarks(self) -> dict[Place, int]:
        """The watermark of each timer service."""
        return {place: service.current_watermark for place, service in self._timer_services()}

    def set_watermarks(self, watermarks: dict[Place, int]) -> None:
        """Puts watermarks back without firing anything; a new subtask gets the lowest of others."""
        for place, service in self._timer_services():
            same = [w for (uid, _, name), w in watermarks.items() if (uid, name) == place[::2]]
            if same:
                service.current_watermark = watermarks.get(place, min(same))

    def state_entries(self) -> int:
        """Entries of keyed state."""
        return sum(backend.entry_count() for backend in self._deployment.backends)

    def timers(self, *, event_time: bool) -> int:
        """Timers that wait."""
        services = [service for _, service in self._timer_services()]
        return sum(len(s.event_queue if event_time else s.processing_queue) for s in services)

    def metric(self, name: str) -> int:
        """The sum of a counter; `KeyError` if there is none."""
        known = set()
        found = []
        for group in self._deployment.metrics.values():
            for scope, metric in group.walk():
                known.add(scope[-1])
                if scope[-1] == name and isinstance(metric, Counter):
                    found.append(metric.count)
        if not found:
            raise KeyError(f"there is no counter {name!r}, only {sorted(known)}")
        return sum(found)

    def readings(self, name: str) -> list[object]:
        """What a metric shows in each operator and subtask that has it."""
        groups = self._deployment.metrics.values()
        return [
            metric.read() for group in groups for scope, metric in group.walk() if scope[-1] == name
        ]

    # -- inside ---------------------------------------------------------------------------------

    def _simulated_clock(self) -> SimulatedClock:
        clock = self._settings.clock
        if not isinstance(clock, SimulatedClock):
            raise TypeError("the test has a clock of its own: move that one, then call settle()")
        return clock

    def _input(self) -> HarnessInput:
        for task in self._tasks.values():
            operator = task.head.operator
            if isinstance(operator, HarnessInput):
                return operator
        raise AssertionError("a plan without its input")

    @staticmethod
    def _is_source(task: Task) -> bool:
        operator = task.head.operator
        return isinstance(operator, SourceOperator) and not isinstance(operator, HarnessInput)

    def _on_first_tasks(self, act: Callable[[ChainNode], Unfinished]) -> None:
        """Has each task that reads the input do something, in the order of the subtasks."""
        source = self._plan.vertices[0].id
        first = {
            vertex.id
            for vertex in self._plan.vertices
            if any(edge.source_vertex == source for edge in vertex.inputs)
        }
        for subtask, task in self._tasks.items():
            if subtask.vertex in first:
                _put(task, act)

    def _timer_services(self) -> Iterator[tuple[Place, InternalTimerService]]:
        for task in self._tested:
            for node in task.nodes:
                uid = node.context.uid
                for value in vars(node.operator).values():
                    if isinstance(value, InternalTimerService) and uid != INPUT_UID:
                        yield (uid, task.subtask.index, value.name), value


def _put(task: Task, act: Callable[[ChainNode], Unfinished]) -> None:
    task.mailbox.put(Mail(lambda: act(task.head)))
