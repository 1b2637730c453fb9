"""Contracts of a source: what connectors implement and what the runtime drives (Flink: FLIP-27).

A `Source` makes one `SplitEnumerator` per job (it discovers splits and assigns them to subtasks;
it lives beside the checkpoint coordinator) and one `SourceReader` per subtask (it turns splits
into records; it belongs to that subtask's task). A source without discovery returns None as
enumerator: its readers know from the context what is theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from operators.errors import WrongResultError

if TYPE_CHECKING:
    from operators.metrics import MetricGroup
    from statebackends.clock import Clock
    from statebackends.operator_state import OperatorStateBackend

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Boundedness(Enum):
    """Whether a source ends by itself."""

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "continuous unbounded"


class SplitBatch:
    """Records of one split, in its order, as a reader hands them out.

    * `timestamps`: the source's own timestamps in ms (Kafka's record timestamps), one for each
      value, or None.
    * `split`: the split's name; each split has a watermark of its own. None: the whole reader
      is one split.
    * `origin`: names the place of a record by its index, for error messages.
    * `side`: for records that go to a side output instead: (tag, values).

    Raises `WrongResultError` for values that are no list, or another number of timestamps.
    """

    __slots__ = ("origin", "side", "split", "timestamps", "values")

    def __init__(
        self,
        values: list[object],
        timestamps: list[int | None] | None = None,
        split: str | None = None,
        origin: Callable[[int], str] | None = None,
        side: list[tuple[str, object]] | None = None,
    ) -> None:
        if type(values) is not list:
            raise WrongResultError(f"SplitBatch takes a list of values, not {values!r:.80}")
        if timestamps is not None and len(timestamps) != len(values):
            raise WrongResultError(
                f"SplitBatch takes a timestamp for each value: {len(values)} values,"
                f" {len(timestamps)} timestamps"
            )
        self.values = values
        self.timestamps = timestamps
        self.split = split
        self.origin = origin
        self.side = side


class InputStatus(Enum):
    """Why a reader has nothing to hand out (Flink: `InputStatus`)."""

    NOTHING_AVAILABLE = "nothing available"
    """Nothing now; the reader calls `SourceReaderContext.available` when that changes."""

    END_OF_INPUT = "end of input"
    """Nothing ever again."""


class SourceReaderContext(Protocol):
    """What a reader gets from its task."""

    subtask_index: int
    parallelism: int

    @property
    def clock(self) -> Clock:
        """Where time comes from."""

    metrics: MetricGroup
    operator_state: OperatorStateBackend
    operator_name: str
    restored: bool
    """True if operator state was restored from a checkpoint (even if it is empty)."""

    def available(self) -> None:
        """Wakes the task: `poll` has something. May be called from any callback of the loop."""

    def split_opened(self, split: str) -> None:
        """A split counts for the watermark from now on."""

    def split_closed(self, split: str) -> None:
        """A split ended and no longer holds the watermark back."""

    def fail(self, error: BaseException) -> None:
        """Fails the task: for errors found in the reader's own background tasks."""


class SourceReader(ABC, Generic[T]):
    """Reads the splits of one subtask. All methods are called by the subtask's task.

    Order: `initialize_state` (restored entries are in operator state; the reader keeps those
    it owns), `start`, then `poll` and the others, `close` always.
    """

    def __init__(self, context: SourceReaderContext) -> None:
        self.context = context

    def initialize_state(self) -> None:
        """Registers operator state and takes over what was restored."""

    async def start(self) -> None:
        """Connects; bounded in time; errors name address and setting."""

    @abstractmethod
    def poll(self, records_max: int) -> SplitBatch | InputStatus:
        """Hands out what is there, at most `records_max` records, without waiting."""

    def add_splits(self, splits: Sequence[object]) -> None:
        """Splits that the enumerator assigned to this subtask."""

    def no_more_splits(self) -> None:
        """The enumerator will assign nothing more."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> None:
        """Puts the positions behind the last record handed out into operator state."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete (Kafka: commit its offsets to the group)."""

    async def close(self) -> None:
        """Closes clients within a bounded time."""


class SplitEnumeratorContext(Protocol):
    """What an enumerator gets from the job."""

    parallelism: int

    clock: Clock
    restored: bool

    def assign_splits(self, subtask_index: int, splits: Sequence[object]) -> None:
        """Sends splits to a reader (`add_splits`), in order with the other assignments."""

    def signal_no_more_splits(self) -> None:
        """Tells all readers that nothing more will be assigned."""

    def fail(self, error: BaseException) -> None:
        """Fails the job."""


class SplitEnumerator(ABC):
    """Discovers splits and assigns them; one per job and source."""

    def __init__(self, context: SplitEnumeratorContext) -> None:
        self.context = context

    @abstractmethod
    async def start(self) -> None:
        """Does the first discovery and assigns what it found; bounded in time."""

    async def run(self) -> None:  # noqa: B027 - optional
        """Goes on discovering until it is cancelled; a failure fails the job."""

    @abstractmethod
    def snapshot_state(self) -> bytes:
        """The enumerator's state at the cut of a checkpoint (JSON, versioned by the source)."""

    @abstractmethod
    def restore_state(self, state: bytes) -> None:
        """Takes over the state of the restored checkpoint; before `start`."""

    async def close(self) -> None:  # noqa: B027 - optional
        """Closes clients within a bounded time."""


class Source(ABC, Generic[T_co]):
    """Describes a source; immutable and shared by all subtasks and attempts."""

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Whether this source ends by itself."""

    @abstractmethod
    def create_reader(self, context: SourceReaderContext) -> SourceReader[T_co]:
        """A reader for one subtask."""

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator | None:
        """The enumerator of the job, or None if readers need none."""
        return None

    @property
    def replayable(self) -> bool:
        """Whether records can be read again after a failure (an iterator's cannot)."""
        return True

    def side_tags(self) -> Iterable[str]:
        """Tags of side outputs that the reader itself fills."""
        return ()
