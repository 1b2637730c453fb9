"""One task under test: inputs and outputs by hand, a clock that stands still, a real loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from operators.elements import CheckpointBarrier
from operators.source import (
    Boundedness,
    InputStatus,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitBatch,
)
from operators.source_operator import SourceOperator
from operators.stream_operator import StreamOperator, Work
from operators.watermarks import WatermarkStrategy
from runtime.chain import ChainNode
from runtime.channel import Channel, OutputRoom
from runtime.checkpoint_messages import SubtaskId
from runtime.exchange import ForwardWriter
from runtime.gate import InputGate
from runtime.mailbox import Mail, Mailbox
from runtime.task import Task
from runtime.turn import LoopTurn, Wakeup
from tests.runtime.chain_parts import chain, context, taken

TURNS = 20
"""Turns of the loop after which a task that has nothing to wait for has come to rest."""


class Ticks:
    """A clock that goes on when user code says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Cuts:
    """Notes the checkpoints of a task, with what its operators had seen by then."""

    def __init__(self, seen: Callable[[], object]) -> None:
        self.taken: list[tuple[int, bool]] = []
        self.states: list[object] = []
        self.aborted: list[int] = []
        self.closed = False
        self.waits = False
        self._seen = seen

    def take(self, barrier: CheckpointBarrier, *, finished: bool) -> bool:
        self.taken.append((barrier.checkpoint_id, finished))
        self.states.append(self._seen())
        return self.waits

    def notify_aborted(self, checkpoint_id: int) -> None:
        self.aborted.append(checkpoint_id)

    def close(self) -> None:
        self.closed = True


class Items(Source[object]):
    """Hands out what a test puts in: batches and statuses; nothing available in between."""

    def __init__(self, *items: SplitBatch | InputStatus) -> None:
        self.items: deque[SplitBatch | InputStatus] = deque(items)
        self.asked: list[int] = []
        self.available: Callable[[], None] = lambda: None

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[object]:
        self.available = context.available
        return _ItemsReader(context, self)

    def add(self, *items: SplitBatch | InputStatus) -> None:
        self.items += items
        self.available()


class _ItemsReader(SourceReader[object]):
    def __init__(self, context: SourceReaderContext, source: Items) -> None:
        super().__init__(context)
        self._source = source

    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        items = self._source.items
        self._source.asked.append(records_max)
        if not items:
            return InputStatus.NOTHING_AVAILABLE
        head = items[0]
        if isinstance(head, SplitBatch) and len(head.values) > records_max:
            items[0] = SplitBatch(head.values[records_max:])
            return SplitBatch(head.values[:records_max])
        return items.popleft()

    def snapshot_state(self, checkpoint_id: int) -> None:
        return None


class TaskRig:
    """Fits `TaskListener`."""

    def __init__(
        self,
        *operators: StreamOperator,
        inputs: int = 1,
        outputs: int = 1,
        capacity: int = 4096,
        lingers: bool = False,
        restored_finished: bool = False,
        records_max: int = 1024,
        seconds: float = 1.0,
    ) -> None:
        self.ticks = Ticks()
        loop = asyncio.get_running_loop()
        turn = LoopTurn(loop, self.ticks, seconds=seconds)
        wakeup = Wakeup(turn)
        self.mailbox = Mailbox(wakeup)
        self.room = OutputRoom()
        nodes = [self._node(each, wakeup) for each in operators]
        self.head = chain(*nodes)
        self.last = nodes[-1]
        source = isinstance(operators[0], SourceOperator)
        self.inputs = [Channel() for _ in range(0 if source else inputs)]
        self.outputs = [Channel(capacity=capacity) for _ in range(outputs)]
        for out in self.outputs:
            out.connect_reader(deque(), lambda: None)
            out.connect_writer(self.room, wakeup.wake)
            self.last.main.writers.append(ForwardWriter([out]))
        self.listened: list[Any] = []
        self.task = Task(
            name="task",
            subtask=SubtaskId(1, 0),
            head=self.head,
            gate=InputGate(self.inputs, wakeup.wake) if self.inputs else None,
            wakeup=wakeup,
            mailbox=self.mailbox,
            room=self.room,
            turn=turn,
            listener=self,
            lingers=lingers,
            restored_finished=restored_finished,
            records_max=records_max,
        )
        self.cut = Cuts(lambda: [list(getattr(each, "log", ())) for each in operators])
        self.task.cut = self.cut

    def _node(self, operator: StreamOperator, wakeup: Wakeup) -> ChainNode:
        def mail(action: Callable[[], Work]) -> None:
            self.mailbox.put(
                Mail(lambda: node.drive_action(action, "in a timer"), between_records=True)
            )

        made = context(type(operator).__name__, mail=mail)
        made.wake = wakeup.wake
        made.failed = lambda error: self.mailbox.put_first(
            Mail(lambda: node.raise_failure(error), at_once=True)
        )
        node = ChainNode(operator, made)
        return node

    def timer(self, action: Callable[[], Work], operator: int = 0) -> None:
        """A timer of the operator at this place in the chain is due."""
        self.task.nodes[operator].context.send_mail(action)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Opens the task, runs it and closes it."""
        await self.task.open()
        run = asyncio.create_task(self.task.run())
        try:
            yield run
        finally:
            run.cancel()
            await asyncio.wait([run])
            await self.task.close()

    def put(self, *elements: Any, channel: int = 0) -> None:
        for element in elements:
            self.inputs[channel].put(element)

    def out(self, index: int = 0) -> list[Any]:
        """Takes what the task has put out."""
        return taken(self.outputs[index])

    # -- TaskListener ---------------------------------------------------------------------------

    def finished(self, task: Task) -> None:
        self.listened.append("finished")

    def checkpoint_declined(self, task: Task, checkpoint_id: int, reason: str) -> None:
        self.listened.append((checkpoint_id, reason))


def reading(source: Source[Any]) -> SourceOperator:
    """A source operator without watermarks."""
    return SourceOperator(source, WatermarkStrategy.no_watermarks())


def records(*values: object) -> SplitBatch:
    return SplitBatch(list(values))


async def settle(turns: int = TURNS) -> None:
    """Lets everything come to rest."""
    for _ in range(turns):
        await asyncio.sleep(0)


def logs(operators: Sequence[Any]) -> list[Any]:
    return [each.log for each in operators]
