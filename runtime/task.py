"""One subtask: the loop that takes elements and mail, drives the chain and keeps to its budget."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from operator import attrgetter

from operators.elements import (
    MAX_WATERMARK,
    CheckpointBarrier,
    CheckpointCancelled,
    EndOfInput,
    RecordBatch,
    StreamElement,
    Watermark,
    WatermarkStatus,
)
from operators.source import InputStatus
from operators.source_operator import SourceOperator
from operators.stream_operator import StreamOperator
from runtime.aligner import Alignment, BarrierAligner
from runtime.chain import ChainNode, Unfinished
from runtime.channel import Channel, OutputRoom
from runtime.checkpoint_messages import SubtaskId
from runtime.errors import USER_FAILURES
from runtime.exchange import ControlElement, RecordWriter
from runtime.fusion import fuse
from runtime.gate import InputGate
from runtime.lifecycle import close_operators, finish_operators, notify_operators, open_operators
from runtime.mailbox import Mail, Mailbox
from runtime.task_contracts import CheckpointCut, TaskListener
from runtime.turn import LoopTurn, Wakeup
from runtime.unit_size import UnitSize
from runtime.valve import WatermarkValve

RECORDS_MAX = 1024
"""Most records of one unit of work, by default."""

POLLED_RECORDS_MAX = 1000
"""Most records of one poll: a bounded source at full speed sends a watermark for each 1,000."""


class Task:
    """Runs the operators of one subtask; only its work (`_work`) touches what they hold.

    That is a generator, driven in the turns of the loop. Input is taken only while every output
    has room; data, room and mail wake a task that waits. A unit of work (a batch, a watermark, a
    due timer) is a generator as well; a due timer may come in between two records of another unit.
    """

    def __init__(
        self,
        *,
        name: str,
        subtask: SubtaskId,
        head: ChainNode,
        gate: InputGate | None,
        wakeup: Wakeup,
        mailbox: Mailbox,
        room: OutputRoom,
        turn: LoopTurn,
        listener: TaskListener,
        restored_finished: bool = False,
        lingers: bool = False,
        records_max: int = RECORDS_MAX,
    ) -> None:
        self.name = name
        self.subtask = subtask
        self.head = head
        self.nodes = list(head.nodes())
        self.mailbox = mailbox
        self.context = wakeup.context
        """Of its work; `open`, `run` and `close` are to run in it as well."""
        self.cut: CheckpointCut | None = None
        self.ended = False
        """Outputs have ended; nothing but checkpoints happens any more."""
        self.watermark: int | None = None
        self.records_in = 0
        self._gate = gate
        self._wakeup = wakeup
        self._room = room
        self._turn = turn
        self._listener = listener
        self.restored_finished = restored_finished
        self._lingers = lingers
        self._released = False
        self._stopping = False
        self._held = False
        self._stack: list[Generator[None, None, None]] = []
        most = records_max if gate is not None else min(records_max, POLLED_RECORDS_MAX)
        self._unit = UnitSize(most, turn.seconds)
        self._newest_cut = -1
        self._pending_trigger: CheckpointBarrier | None = None
        self._writers: list[RecordWriter] = [
            writer for node in self.nodes for route in node.routes for writer in route.writers
        ]
        self._bounded: list[StreamOperator] = []
        if gate is None:
            assert isinstance(head.operator, SourceOperator)
            self._source: SourceOperator | None = head.operator
        else:
            self._source = None
            self._valve = WatermarkValve(len(gate.channels))
            self._aligner = BarrierAligner(len(gate.channels))
            self._unended = len(gate.channels)
            self._drained = True

    # -- what others may ask, at any time --------------------------------------------------------

    def trigger_checkpoint(self, barrier: CheckpointBarrier) -> None:
        """Starts a checkpoint here, if this task has no input that brings the barrier."""
        self.mailbox.put(Mail(lambda: self._trigger(barrier)))

    def notify_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durably complete."""
        self.mailbox.put(Mail(lambda: self._notify(checkpoint_id, complete=True)))

    def notify_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never complete."""
        self.mailbox.put(Mail(lambda: self._notify(checkpoint_id, complete=False)))

    def release(self) -> None:
        """A finished task may leave."""
        self._released = True
        self._wakeup.wake()

    def tell_source(self, tell: Callable[[SourceOperator], None]) -> None:
        """Has `tell` called with the source, in order with checkpoint triggers."""
        assert self._source is not None, f"{self.name} has no source"
        self.mailbox.put(Mail(partial(tell, self._source)))

    def stop_source(self) -> None:
        """A source reads no more; the final checkpoint follows."""
        if self._source is not None:
            self._stopping = True
            self._wakeup.wake()

    # -- the loop --------------------------------------------------------------------------------

    async def open(self) -> None:
        """Opens the operators; those of a subtask restored as finished stay shut."""
        await open_operators(self.nodes, finished=self.restored_finished)
        if not self.restored_finished:
            fuse(self.nodes)
            self._bounded = [n.operator for n in self.nodes if not n.operator.always_has_room]

    async def run(self) -> None:
        """Works until the input has ended (and, with checkpoints, until it is released)."""
        await self._wakeup.drive(self._work())
        if not self.restored_finished:
            await finish_operators(self.nodes)

    async def close(self) -> list[Exception]:
        """Closes everything whatever happened before; returns what went wrong doing so."""
        self.mailbox.close()
        if self.cut is not None:
            self.cut.close()
        while self._stack:
            self._stack.pop().close()
        return [] if self.restored_finished else await close_operators(self.nodes)

    def _work(self) -> Generator[None, None, None]:
        """Mail, then the newest work that is paused, else the next input, until the end."""
        wakeup, turn, stack, mails = self._wakeup, self._turn, self._stack, self.mailbox.mails
        room, bounded, monotonic = self._room, self._bounded, turn.monotonic
        next_input = self._poll_source if self._gate is None else self._take_input
        # A source says itself whether it has something.
        ready = (None,) if self._gate is None else self._gate.ready
        if self.restored_finished:
            stack.append(self._end())
        while True:
            if self._held:
                wakeup.waits = True
                yield
                continue
            if mails:
                self._serve_mail()
            full = room.full or (bounded and not all(map(attrgetter("has_room"), bounded)))
            if stack:
                idle = full
                if not full:
                    self._advance()
            elif self.ended:
                if self._released or not self._lingers:
                    return
                idle = not mails
            else:
                # A source may send its task mail while it is polled: a failure.
                idle = full or not ((ready and next_input()) or mails)
            # With nothing to do next it waits at once, without another look.
            spent = (room.full or not (ready or stack)) and not (mails or self.ended)
            if idle or spent:
                wakeup.waits = True
                yield
            elif monotonic() >= turn.end:
                wakeup.go_on()
                yield

    def resume(self) -> None:
        """The state of the last cut is forked: the operators may go on."""
        self._held = False
        self._wakeup.wake()

    def _advance(self) -> None:
        """Goes on with the newest unit of work."""
        room, mails, turn = self._room, self.mailbox.mails, self._turn
        work = self._stack[-1]
        for _ in work:
            if room.full or mails or turn.over():
                return
        self._stack.pop()

    def _serve_mail(self) -> None:
        """Runs mail: all kinds between units of work, timers (room or not) between two records."""
        if self.mailbox.mails[0].at_once:
            self._start(self.mailbox.mails.popleft().run())
        elif not self._stack:
            while not (self._stack or self._held) and (mail := self.mailbox.take()) is not None:
                if self.ended and mail.between_records:
                    continue
                self._start(mail.run())
        elif not any(node.operator.in_record for node in self.nodes):
            mail = self.mailbox.take(between_records=True)
            if mail is not None:
                self._start(mail.run())

    def _start(self, work: Unfinished) -> None:
        """Goes on with work that has begun until it ends or must pause."""
        if work is None:
            return
        if self._held:
            self._stack.append(work)
            return
        room, mails, turn = self._room, self.mailbox.mails, self._turn
        for _ in work:
            if room.full or mails or turn.over():
                self._stack.append(work)
                break

    def _take_input(self) -> bool:
        """Takes the next element of the gate, which has one."""
        unit, head = self._unit, self.head
        assert self._gate is not None
        element = self._gate.take(unit.records)
        if type(element) is not RecordBatch:
            self._control(element)  # type: ignore[arg-type]  # every other kind is control
            return True
        count = len(element.values)
        self.records_in += count
        # A trickle of single records says nothing about a whole unit.
        learns = not unit.fixed and (count > 1 or unit.records == 1)
        began = self._turn.monotonic() if learns else 0.0
        work = head.push(element)
        if work is not None:
            self._start(work)
        if learns:
            unit.learn(count, self._turn.monotonic() - began)
        return True

    def _poll_source(self) -> bool:
        """Reads from the source; false if it has nothing."""
        source, unit, head = self._source, self._unit, self.head
        assert source is not None
        if self._stopping:
            return False
        try:
            polled = source.poll(unit.records)
        except USER_FAILURES as error:
            raise head.failure(error, doing="reading its source") from error
        if polled is InputStatus.NOTHING_AVAILABLE:
            return False
        if polled is InputStatus.END_OF_INPUT:
            self._start(self._end())
            return True
        sent = head.records_out
        began = 0.0 if unit.fixed else self._turn.monotonic()
        if type(polled) is tuple:
            work = head.push_on(polled)
        else:
            work = head.drive_polled(polled, source.origin)
        if work is not None:
            self._start(work)
        if not unit.fixed and (count := head.records_out - sent):
            unit.learn(count, self._turn.monotonic() - began)
        return True

    def _control(self, element: ControlElement) -> None:
        """Handles one control element of the channel that the gate took it from."""
        index = self._taken_from().index
        if type(element) is Watermark:
            self._start_all(self._valve.watermark(index, element.timestamp))
        elif type(element) is WatermarkStatus:
            self._start_all(self._valve.status(index, element.idle))
        elif type(element) is CheckpointBarrier:
            self._align(self._aligner.barrier(index, element))
        elif type(element) is CheckpointCancelled:
            self._align(self._aligner.cancelled(index, element.checkpoint_id))
        else:
            assert type(element) is EndOfInput
            self._channel_ended(index, drained=element.drained)

    def _taken_from(self) -> Channel:
        assert self._gate is not None
        assert self._gate.channel is not None
        return self._gate.channel

    def _start_all(self, elements: Sequence[StreamElement]) -> None:
        if elements:
            self._start(self._drive_all(elements))

    def _drive_all(self, elements: Iterable[StreamElement]) -> Generator[None, None, None]:
        for element in elements:
            if type(element) is Watermark:
                self.watermark = element.timestamp
            yield from self.head.push(element) or ()

    # -- checkpoints -----------------------------------------------------------------------------

    def _align(self, alignment: Alignment) -> None:
        gate = self._gate
        assert gate is not None
        for checkpoint_id in alignment.aborted:
            self._listener.checkpoint_declined(self, checkpoint_id, "cancelled upstream")
            self._send_control(CheckpointCancelled(checkpoint_id))
        if alignment.unblock:
            gate.unblock_all()
        if alignment.block:
            gate.block(self._taken_from())
        if alignment.completed is not None:
            self._checkpoint(alignment.completed)

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        if barrier.checkpoint_id <= self._newest_cut:
            return
        if self._source is not None or self.ended:
            self._checkpoint(barrier)
        else:
            # Needed only if all inputs end without bringing this barrier.
            self._pending_trigger = barrier

    def _checkpoint(self, barrier: CheckpointBarrier) -> None:
        """Sends the barrier on and takes the cut, in one step."""
        assert self.cut is not None
        assert not self._stack, "a checkpoint inside a unit of work"
        self._newest_cut = barrier.checkpoint_id
        pending = self._pending_trigger
        if pending is not None and pending.checkpoint_id <= barrier.checkpoint_id:
            self._pending_trigger = None
        finished = self.ended
        if not finished:
            self._send_control(barrier)
        self._held = self.cut.take(barrier, finished=finished)
        self._unit.restart()
        if barrier.final and not finished:
            self._finish(drained=False)

    def _notify(self, checkpoint_id: int, *, complete: bool) -> None:
        if not complete and self.cut is not None:
            self.cut.notify_aborted(checkpoint_id)
        if not self.restored_finished:
            notify_operators(self.nodes, checkpoint_id, complete=complete)

    # -- the end ---------------------------------------------------------------------------------

    def _channel_ended(self, index: int, *, drained: bool) -> None:
        self._unended -= 1
        self._drained = self._drained and drained
        elements = self._valve.ended(index, drained)
        self._align(self._aligner.ended(index))
        if self.ended:
            return
        if self._unended:
            self._start_all(elements)
        elif self._drained:
            self._start(self._end())
        else:
            self._finish(drained=False)

    def _end(self) -> Generator[None, None, None]:
        """The work of the end of input: MAX watermark, the operators' last words, EndOfInput."""
        for writer in self._writers:
            writer.ending = True
        if not self.restored_finished:
            yield from self._drive_all((MAX_WATERMARK,))
            yield from self.head.end_input()
        self._finish(drained=True)

    def _finish(self, *, drained: bool) -> None:
        self._send_control(EndOfInput(drained))
        self.ended = True
        if drained:
            self._listener.finished(self)
        pending, self._pending_trigger = self._pending_trigger, None
        if pending is not None and pending.checkpoint_id > self._newest_cut:
            self.trigger_checkpoint(pending)  # behind the work that ends here

    def _send_control(self, element: ControlElement) -> None:
        for writer in self._writers:
            writer.control(element)
