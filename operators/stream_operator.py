"""The contract between an operator and the task that runs it.

An operator computes on batches; the task owns everything else (channels, barriers, mail, time
budget). An operator instance belongs to one subtask and is only ever called by that subtask's
task, so it needs no locks and must not hand itself to anyone else.

Order of calls::

    setup(context)             the context is kept; no state yet
    initialize_state()         states, timer services and operator state are fetched here;
                               what was restored is already in them
    open()                     user functions open
    await start()              sources and sinks connect
    process_batch / process_watermark / process_status / mail      any number, any order
    end_input()                once, only if the input ended by itself or is drained
    close()                    once, always, also after a failure; user functions close

and at any time between two calls ``snapshot_state`` and the ``notify_*`` calls.

**Outputs are pulled.** Each processing call returns an iterable of stream elements: a tuple
where the result is small, a generator where it may be long. The task sends each element on
before it takes the next one, and may pause for as long as it likes between two (because the
turn of the event loop is over, or because an output is full). Two rules follow:

* A generator yields at the latest when it holds `BATCH_RECORDS_MAX` output records, and at the
  end. When it yields it holds no finished output back, so batch boundaries are unobservable.
* While it is suspended *inside* one record or timer (a user generator that goes on for ever),
  `in_record` is true: until then no other call but ``close`` is made. Where it is false, other
  calls may come in between, for example processing-time timers between two event-time timers.

Watermarks: an operator puts out the watermark itself, after everything that it caused
(``process_watermark`` of an operator without timers returns just the watermark).

Failures: user code's exceptions pass through untouched; the operator leaves `position` so that
the task can say on which record it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Protocol

from operators.elements import RecordBatch, StreamElement, Watermark, WatermarkStatus

if TYPE_CHECKING:
    from operators.metrics import MetricGroup
    from statebackends.backend import KeyedStateBackend
    from statebackends.clock import Clock
    from statebackends.operator_state import OperatorStateBackend

BATCH_RECORDS_MAX = 1024
"""Most output records an operator holds before it hands them on."""

Work = Iterable[StreamElement]
"""What a processing call returns."""


class OperatorContext(Protocol):
    """What a task gives to each of its operators; all of it is fixed for the attempt."""

    job_name: str
    operator_name: str
    uid: str
    subtask_index: int
    parallelism: int
    max_parallelism: int
    attempt: int
    """How often this run of the job was started before, from 0."""
    restored_checkpoint_id: int | None
    clock: Clock
    metrics: MetricGroup
    operator_state: OperatorStateBackend
    auto_watermark_interval_ms: int

    @property
    def keyed_state(self) -> KeyedStateBackend:
        """The keyed state of this operator; `StateError` where its input is not keyed."""

    def send_mail(self, action: Callable[[], Work]) -> None:
        """Has the task call `action` between two elements and send on what it returns.

        May be called from a clock callback. Mail after the task's end is dropped.
        """

    def output_freed(self) -> None:
        """Wakes the task after `has_room` of this operator turned true."""

    def fail(self, error: BaseException) -> None:
        """Fails the task as if `error` had been raised in this operator."""


class StreamOperator(ABC):
    """One computation in a task; see the module's text for the contract."""

    context: OperatorContext
    in_record: bool = False
    """True while a suspended generator of this operator is inside one record or timer."""

    always_has_room: bool = True
    """False, from `start` on at the latest, where `has_room` can turn false."""

    copies_outputs: bool = False
    """Whether user code may change what it has put out; set before `open`."""

    key: Hashable = None
    """The key that user code was called with last, for error messages."""

    timer: int | None = None
    """The time of the timer in which user code has failed, for error messages."""

    function: object = None
    """The user function, if there is one."""

    def setup(self, context: OperatorContext) -> None:
        """Receives the context; called first."""
        self.context = context

    def initialize_state(self) -> None:  # noqa: B027 - most operators have no state
        """Fetches states and timer services from the context."""

    def open(self) -> None:  # noqa: B027 - an operator without user function has nothing to open
        """Opens user functions; after `initialize_state`."""

    async def start(self) -> None:  # noqa: B027 - only connectors have to
        """Connects clients, after `open` and before the first record; bounded in time."""

    async def restore_finished(self, context: OperatorContext) -> None:  # noqa: B027 - only sinks
        """Does what was left to do when all subtasks of the operator had finished.

        Called in place of everything else, in an attempt that begins from such a checkpoint. A
        sink commits what that checkpoint holds: the process may have died before it could.
        """

    @abstractmethod
    def process_batch(self, batch: RecordBatch) -> Work:
        """Computes one batch (never empty)."""

    def process_watermark(self, watermark: Watermark) -> Work:
        """Advances event time; timers that became due fire, then the watermark follows."""
        return (watermark,)

    def process_status(self, status: WatermarkStatus) -> Work:
        """Passes on that the input went idle or active."""
        return (status,)

    def end_input(self) -> Work:
        """The input ended by itself or is drained; MAX watermark has been processed before."""
        return ()

    async def finish(self) -> None:  # noqa: B027 - only sinks have to
        """Waits until everything is safe outside; once, after `end_input`.

        With checkpoints on it comes after the final checkpoint was notified, otherwise right
        after `end_input`. Raises what makes the task fail. Not called after a failure.
        """

    @property
    def has_room(self) -> bool:
        """False while the operator can take no more input (a sink whose buffer is full)."""
        return True

    def position(self) -> int | None:
        """Index in the batch at hand of the record that user code was called with last."""
        return None

    def snapshot_state(self, checkpoint_id: int) -> None:  # noqa: B027 - optional hook
        """Puts what must survive into operator state, right before the cut is made."""

    async def flush(self, checkpoint_id: int) -> None:  # noqa: B027 - only sinks have to
        """Waits until what was processed before the barrier is safe outside.

        Part of the acknowledgement of `checkpoint_id`: runs beside the processing of later
        records. Raises what makes the checkpoint (and the task) fail.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027 - optional hook
        """The checkpoint (and every earlier one) is durably complete."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027 - optional hook
        """The checkpoint will never complete."""

    def close(self) -> None:  # noqa: B027 - optional hook
        """Releases what the operator holds; called once, whatever happened before."""

    async def close_async(self) -> None:  # noqa: B027 - only connectors have to
        """Closes clients; awaited after `close` with a deadline."""


class OperatorFactory(Protocol):
    """Makes one operator instance for each subtask and attempt, user functions copied."""

    def __call__(self) -> StreamOperator:
        """A fresh operator."""
