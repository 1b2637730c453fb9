"""The operators of one task: an operator's output is the direct call of the next.

A chain is a tree of nodes. Work is pulled: `push` gives one element to an operator; its outputs
are sent on one by one (depth first), with a pause after each, so that the task decides whether
to go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import NoReturn, Protocol

from operators.elements import RecordBatch, SideBatch, StreamElement, Watermark
from operators.stream_operator import OperatorContext, StreamOperator, Work
from operators.user_places import place_of
from runtime.errors import USER_FAILURES, OperatorFailure
from runtime.exchange import RecordWriter
from runtime.failure_report import INTERNAL_FOLDERS
from statebackends.errors import StateError
from statebackends.mutability import copy_value

logger = logging.getLogger(__name__)

RECORD_TEXT_MAX = 200
"""Longest text of a record in an error message."""


Unfinished = Generator[None, None, None] | None
"""What is left of a piece of work: each step of it sends one output on."""


class FusedLoop(Protocol):
    """One loop for several operators of a chain (`fusion.py`)."""

    def push(self, batch: RecordBatch) -> Unfinished:
        """Runs the operators over a batch and sends on what comes out."""


class Route:
    """Where one output (main or side) of a node goes."""

    __slots__ = ("children", "writers")

    def __init__(self) -> None:
        self.writers: list[RecordWriter] = []
        self.children: list[ChainNode] = []


class ChainNode:
    """One operator in a task with the routes of its outputs."""

    __slots__ = (
        "busy",
        "context",
        "copies_input",
        "fused",
        "keyed",
        "main",
        "operator",
        "records_in",
        "records_out",
        "routes",
        "sides",
        "unread",
    )

    def __init__(
        self, operator: StreamOperator, context: OperatorContext, *, keyed: bool = False
    ) -> None:
        self.operator = operator
        self.context = context
        self.keyed = keyed
        """Whether the operator has keyed state."""
        self.fused: FusedLoop | None = None
        """Takes the batches of this operator and some behind it, where they share a loop."""
        self.copies_input = False
        """The operator gets copies of its records, which no other operator sees."""
        self.busy = False
        """Work of this operator is under way (it may be suspended)."""
        self.records_in = 0
        self.records_out = 0
        """Records of the main output."""
        self.main = Route()
        self.sides: dict[str, Route] = {}
        self.unread: set[str] = set()
        """Side outputs that records came for though nobody reads them."""
        self.routes: list[Route] = [self.main]

    def side(self, tag: str) -> Route:
        """The route of a side output, made at the first call."""
        if tag not in self.sides:
            self.sides[tag] = Route()
            self.routes.append(self.sides[tag])
        return self.sides[tag]

    def nodes(self) -> Iterator[ChainNode]:
        """This node and all below it, upstream first."""
        yield self
        for route in self.routes:
            for child in route.children:
                yield from child.nodes()

    def push(self, element: StreamElement) -> Unfinished:
        """Gives one element to the operator and sends its outputs on.

        Returns the work that is left, or None if that was all: a short output of a chain without
        branches needs no suspended work.
        """
        operator = self.operator
        self.busy = True
        try:
            kind = type(element)
            if kind is RecordBatch:
                if self.copies_input:
                    element = self._copied(element)  # type: ignore[arg-type]  # kind says it
                if self.fused is not None:
                    return self.fused.push(element)  # type: ignore[arg-type]  # kind says it
                self.records_in += len(element.values)  # type: ignore[union-attr]  # kind says it
                work = operator.process_batch(element)  # type: ignore[arg-type]  # kind says it
            elif kind is Watermark:
                work = operator.process_watermark(element)  # type: ignore[arg-type]  # as above
            else:
                work = operator.process_status(element)  # type: ignore[arg-type]  # as above
            if type(work) is tuple:
                return self.push_on(work) if work else None
        except OperatorFailure:
            raise
        except USER_FAILURES as error:
            raise self.failure(error, element) from error
        finally:
            self.busy = False
        return self._drive(work, element)

    def push_on(self, outputs: tuple[StreamElement, ...]) -> Unfinished:
        """Sends outputs on, at once where there is one output and one way."""
        main = self.main
        if len(outputs) != 1 or len(self.routes) > 1 or len(main.children) > 1:
            return self.send(outputs)
        output = outputs[0]
        if type(output) is RecordBatch:
            self.records_out += len(output.values)
            for writer in main.writers:
                writer.emit(output)
        elif type(output) is SideBatch:
            self._note_unread(output.tag)
            return None
        else:
            for writer in main.writers:
                writer.control(output)  # type: ignore[arg-type]  # neither batch nor side output
        return main.children[0].push(output) if main.children else None

    def _drive(self, work: Work, element: StreamElement) -> Generator[None, None, None]:
        self.busy = True
        try:
            yield from self.send(work)
        except OperatorFailure:
            raise
        except USER_FAILURES as error:
            raise self.failure(error, element) from error
        finally:
            self.busy = False

    def end_input(self) -> Generator[None, None, None]:
        """Tells the operators, upstream first, that their input has ended."""
        try:
            yield from self.send(self.operator.end_input())
        except OperatorFailure:
            raise
        except USER_FAILURES as error:
            raise self.failure(error, doing="at the end of its input") from error
        for route in self.routes:
            for child in route.children:
                yield from child.end_input()

    def drive_action(self, action: Callable[[], Work], doing: str) -> Generator[None, None, None]:
        """Calls something the operator asked for (a due timer, a poll) and sends on its outputs."""
        try:
            yield from self.send(action())
        except OperatorFailure:
            raise
        except USER_FAILURES as error:
            raise self.failure(error, doing=doing) from error

    def drive_polled(
        self, work: Work, origin: Callable[[int], str] | None
    ) -> Generator[None, None, None]:
        """Sends on what a source has read; `origin` names the place of a record by its index."""
        try:
            yield from self.send(work)
        except OperatorFailure:
            raise
        except USER_FAILURES as error:
            index = self.operator.position()
            place = "" if origin is None or index is None else _place(origin, index)
            raise self._failure(error, doing="reading its source", origin=place) from error

    def send(self, work: Work) -> Generator[None, None, None]:
        """Sends each output on; a pause after each batch of a generator.

        A tuple is no more than its input was, so there is nothing to pause for; nor is there
        after a control element, which needs no room.
        """
        pauses = type(work) is not tuple
        main = self.main
        writers = main.writers
        children = main.children
        for output in work:
            kind = type(output)
            if kind is RecordBatch:
                if not output.values:  # type: ignore[union-attr]  # kind says it
                    # An empty batch is an offer to pause in long work without output.
                    yield
                    continue
                self.records_out += len(output.values)  # type: ignore[union-attr]  # as above
                for writer in writers:
                    writer.emit(output)  # type: ignore[arg-type]  # kind says it
                for child in children:
                    yield from child.push(output) or ()
            elif kind is SideBatch:
                route = self.sides.get(output.tag)  # type: ignore[union-attr]  # as above
                if route is None:
                    self._note_unread(output.tag)  # type: ignore[union-attr]  # as above
                    yield
                    continue
                batch: RecordBatch = output.batch  # type: ignore[union-attr]  # as above
                for writer in route.writers:
                    writer.emit(batch)
                for child in route.children:
                    yield from child.push(batch) or ()
            else:
                for route in self.routes:
                    for writer in route.writers:
                        writer.control(output)  # type: ignore[arg-type]  # as above
                    for child in route.children:
                        yield from child.push(output) or ()
                continue
            if pauses:
                yield

    def _note_unread(self, tag: str) -> None:
        """Says once that a side output is read by nobody, where others are: a misspelt tag."""
        if self.sides and tag not in self.unread:
            self.unread.add(tag)
            logger.warning(
                "operator %r puts out records for side output %r, which nobody reads; read are %s",
                self.context.operator_name,
                tag,
                ", ".join(map(repr, self.sides)),
            )

    def _copied(self, batch: RecordBatch) -> RecordBatch:
        values: list[object] = []
        try:
            for value in batch.values:
                values.append(copy_value(value))  # noqa: PERF401 - their number says which failed
        except StateError as error:
            cause = error.__cause__
            refused = TypeError(
                "the record cannot be copied, as pipeline.object-reuse=false wants it "
                f"({type(cause).__name__}: {cause})"
            )
            raise self.record_failure(refused, batch, len(values)) from refused
        return RecordBatch(values, batch.timestamps, batch.keys, batch.origin)

    def raise_failure(self, error: BaseException) -> NoReturn:
        """Fails the task with an error that the operator found outside of any call."""
        raise self._failure(error) from error

    def failure(
        self, error: BaseException, element: StreamElement | None = None, *, doing: str = ""
    ) -> OperatorFailure:
        """The failure of this operator with what is known about key and record."""
        if isinstance(element, RecordBatch):
            return self.record_failure(error, element, self.operator.position())
        if isinstance(element, Watermark):
            doing = f"at watermark {element.timestamp}"
        return self._failure(error, doing=doing)

    def key_failure(self, error: BaseException, batch: RecordBatch, index: int) -> OperatorFailure:
        """The failure of a key selector behind this operator (or of the key it gave)."""
        return self.record_failure(error, batch, index, doing="selecting the key of its output")

    def record_failure(
        self, error: BaseException, batch: RecordBatch, index: int | None, *, doing: str = ""
    ) -> OperatorFailure:
        """The failure of this operator on one record of a batch, if it is known which."""
        key = record = origin = ""
        if index is not None and 0 <= index < len(batch.values):
            record = _text(batch.values[index])
            if batch.keys is not None:
                key = _text(batch.keys[index])
            if batch.origin is not None:
                origin = _place(batch.origin, index)
        return self._failure(error, doing=doing, key=key, record=record, origin=origin)

    def _failure(
        self,
        error: BaseException,
        *,
        doing: str = "",
        key: str = "",
        record: str = "",
        origin: str = "",
    ) -> OperatorFailure:
        context = self.context
        if not key and self.operator.key is not None:
            key = _text(self.operator.key)
        if self.operator.timer is not None:
            doing = f"in the timer of {self.operator.timer}"
        failure = OperatorFailure(
            operator=context.operator_name,
            uid=context.uid,
            subtask_index=context.subtask_index,
            parallelism=context.parallelism,
            doing=doing,
            key=key,
            record=record,
            origin=origin,
            function="" if _shows_user_code(error) else place_of(self.operator.function),
        )
        failure.__cause__ = error
        return failure


def _shows_user_code(error: BaseException) -> bool:
    """Whether the traceback ends in a line of the user's, rather than in one that refused it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and not trace.tb_frame.f_code.co_filename.startswith(INTERNAL_FOLDERS)


def _place(origin: Callable[[int], str], index: int) -> str:
    """Where a record came from; an origin that raises must not hide the failure."""
    try:
        return origin(index)
    except Exception as error:
        return f"<a place whose description raised {type(error).__name__}>"


def _text(value: object) -> str:
    """`repr`, shortened; a repr that raises must not hide the failure."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    if len(text) > RECORD_TEXT_MAX:
        text = "".join(islice(text, RECORD_TEXT_MAX)) + "..."
    return text
