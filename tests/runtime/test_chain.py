"""Operators chained in one task: who is called when, and what a failure says."""

from __future__ import annotations

from typing import Any

import pytest

from operators.elements import IDLE, RecordBatch, SideBatch, Watermark
from operators.stream_operator import Work
from runtime.chain import RECORD_TEXT_MAX, ChainNode
from runtime.errors import OperatorFailure
from runtime.exchange import ForwardWriter
from tests.runtime.chain_parts import (
    Custom,
    PerRecord,
    Relay,
    batch,
    chain,
    channel,
    context,
    node,
    run,
    taken,
)


def test_each_output_goes_all_the_way_before_the_next_is_made() -> None:
    """Depth first: the last operator has a record before the first one makes its second."""
    log: list[Any] = []
    first = PerRecord(log, "first")
    head = chain(node(first), node(PerRecord(log, "second")), node(Relay(log, "third")))
    run(head.push(batch(1, 2)))
    assert log == [
        ("first", 1),
        ("second", 1),
        ("third", [1]),
        ("first", 2),
        ("second", 2),
        ("third", [2]),
    ]


def test_a_short_output_of_a_straight_chain_leaves_no_work() -> None:
    """Tuples of one element go through at once."""
    last = Relay()
    assert chain(node(Relay()), node(Relay()), node(last)).push(batch(1)) is None
    assert last.log == [[1]]


def test_suspended_work_makes_no_output_ahead_of_its_turn() -> None:
    """The operator is asked for its next output only when the work goes on."""
    operator = PerRecord()
    work = node(operator).push(batch(1, 2, 3))
    assert work is not None
    next(work)
    assert operator.log == [1]
    next(work)
    assert operator.log == [1, 2]


def test_an_output_goes_to_writers_and_all_children() -> None:
    """A fan-out shares each batch among channels and chained operators."""
    left, right = Relay(), Relay()
    head, out = node(Relay()), channel()
    head.main.children += [node(left), node(right)]
    head.main.writers.append(ForwardWriter([out]))
    run(head.push(batch(1, 2)))
    assert (left.log, right.log, taken(out)) == ([[1, 2]], [[1, 2]], [1, 2])


def split(records: RecordBatch) -> Work:
    yield SideBatch("late", RecordBatch([-1]))
    yield records


def test_side_outputs_go_to_their_own_receivers() -> None:
    """A tagged batch reaches the children and channels of its tag, and nobody else."""
    main, late, other = Relay(), Relay(), Relay()
    head, out = node(Custom(split)), channel()
    head.main.children.append(node(main))
    head.side("late").children.append(node(late))
    head.side("late").writers.append(ForwardWriter([out]))
    head.side("other").children.append(node(other))
    run(head.push(batch(1)))
    assert (main.log, late.log, taken(out), other.log) == ([[1]], [[-1]], [-1], [])


@pytest.mark.parametrize("generated", [True, False])
def test_a_side_output_that_nobody_reads_is_dropped(generated: bool) -> None:
    """The main output is not disturbed."""
    main = Relay()
    operator = Custom(split if generated else lambda _: (SideBatch("late", batch(-1)),))
    run(chain(node(operator), node(main)).push(batch(1)))
    assert main.log == ([[1]] if generated else [])


def test_a_side_output_without_end_can_be_suspended_though_nobody_reads_it() -> None:
    """There is a pause after each of its batches."""

    def endless(_: RecordBatch) -> Work:
        while True:
            yield SideBatch("unread", batch(0))

    work = node(Custom(endless)).push(batch(1))
    assert work is not None
    assert [next(work) for _ in range(3)] == [None] * 3


def test_watermark_and_status_reach_every_branch() -> None:
    """Main and side outputs alike, behind what the operator put out before."""
    main, late, out = Relay(), Relay(), channel()
    head = node(Custom(split))
    head.main.children.append(node(main))
    head.side("late").children.append(node(late))
    head.side("late").writers.append(ForwardWriter([out]))
    for element in (batch(1), Watermark(5), IDLE):
        run(head.push(element))
    assert main.log == [[1], Watermark(5)]
    assert late.log == [[-1], Watermark(5)]
    assert taken(out) == [-1, Watermark(5), IDLE]


def test_what_a_watermark_causes_comes_before_it() -> None:
    """An operator puts out the results of its timers first, and the next one sees that order."""
    fires = Custom(lambda one: (one,), on_watermark=lambda mark: (batch("fired"), mark))
    last = Relay()
    run(chain(node(fires), node(last)).push(Watermark(9)))
    assert last.log == [["fired"], Watermark(9)]


def test_an_empty_batch_is_a_pause_and_travels_nowhere() -> None:
    """An operator offers to pause in long work; nobody behind it is called."""
    last, out = Relay(), channel()
    head = chain(node(Custom(lambda _: iter([batch(), batch(), batch(1)]))), node(last))
    head.main.writers.append(ForwardWriter([out]))
    assert run(head.push(batch(0))) == 3
    assert (last.log, taken(out), head.records_out) == ([[1]], [1], 1)


def test_records_are_counted_where_they_come_in_and_go_out() -> None:
    """A filtering operator counts more in than out; side outputs do not count."""
    head = chain(node(Custom(lambda one: iter([batch(*one.values[1:])]))), node(Relay()))
    head.side("late")
    run(head.push(batch(1, 2, 3)))
    (child,) = head.main.children
    assert (head.records_in, head.records_out, child.records_in) == (3, 2, 2)


def test_the_end_is_told_upstream_first() -> None:
    """What an operator puts out at its end is processed before the next one is told."""
    last = Relay()
    ends = Custom(lambda one: (one,), on_end=lambda: (batch("rest"),))
    run(chain(node(ends), node(last)).end_input())
    assert last.log == [["rest"], "end"]


def test_mail_is_sent_on_like_any_output() -> None:
    """What a due timer puts out takes the way of the main output."""
    last = Relay()
    head = chain(node(Relay()), node(last))
    run(head.drive_action(lambda: (batch("timer"), Watermark(1)), "in a timer"))
    assert last.log == [["timer"], Watermark(1)]


# -- failures ----------------------------------------------------------------------------------


def fails(_: RecordBatch) -> Work:
    raise ValueError("user code")


def fails_late(one: RecordBatch) -> Work:
    yield batch(one.values[0])
    raise ValueError("user code")


def failure_of(head: ChainNode, element: Any) -> OperatorFailure:
    with pytest.raises(OperatorFailure) as caught:
        run(head.push(element))
    return caught.value


def placed(index: int) -> str:
    return f"clicks[3]@{1000 + index}"


@pytest.mark.parametrize("process", [fails, fails_late])
def test_a_failure_has_coordinates(process: Any) -> None:
    """Operator, uid, subtask, key, place and record, whether at once or in suspended work."""
    failing = ChainNode(
        Custom(process, at=1), context("Count", uid="count-1", subtask_index=1, parallelism=4)
    )
    failing.operator.setup(failing.context)
    error = failure_of(
        chain(node(Relay()), failing), batch("a", "b", keys=["ka", "kb"], origin=placed)
    )
    assert str(error) == (
        "operator 'Count' (uid count-1, subtask 2/4), on key 'kb', record from clicks[3]@1001,"
        " record 'b'"
    )
    assert isinstance(error.__cause__, ValueError)


def test_the_users_exception_is_left_as_it_was() -> None:
    """It is the cause, with its own traceback that ends in the user's function."""
    error = failure_of(node(Custom(fails)), batch(1))
    trace = error.__cause__.__traceback__ if error.__cause__ else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    assert trace.tb_frame.f_code is fails.__code__


def test_a_failure_names_the_operator_that_failed_not_its_sender() -> None:
    """Through any number of chained operators and branches."""
    head = chain(node(PerRecord(), "first"), node(Relay(), "second"), node(Custom(fails), "third"))
    head.main.children.append(node(Relay(), "another"))
    assert failure_of(head, batch(1, 2)).operator == "third"


def test_without_a_position_no_record_is_named() -> None:
    """A wrong record would be worse than none."""
    error = failure_of(node(Custom(fails, at=None)), batch("innocent"))
    assert "innocent" not in str(error)


def test_a_failure_at_a_watermark_says_so() -> None:
    """With the watermark and the key that user code was called with last."""

    def fire(_: Watermark) -> Work:
        raise ValueError("user code")

    operator = Custom(lambda one: (one,), on_watermark=fire)
    operator.key = "the key"
    error = failure_of(node(operator), Watermark(77))
    assert "at watermark 77, on key 'the key'" in str(error)


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_a_repr_that_raises_does_not_hide_the_failure() -> None:
    """The type of the record is shown instead."""
    error = failure_of(node(Custom(fails, at=0)), batch(Shy()))
    assert "<Shy whose repr raised RuntimeError>" in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_a_long_record_is_cut() -> None:
    """A record of a megabyte does not make a message of a megabyte."""
    error = failure_of(node(Custom(fails, at=0)), batch("x" * 1_000_000))
    assert len(str(error)) < RECORD_TEXT_MAX + 200
    assert str(error).endswith("xxx...")


def test_an_origin_that_raises_does_not_hide_the_failure() -> None:
    """The place is left out."""

    def lost(_: int) -> str:
        raise IndexError("no such place")

    error = failure_of(node(Custom(fails, at=0)), batch("r", origin=lost))
    assert isinstance(error.__cause__, ValueError)
    assert "record 'r'" in str(error)


def test_a_failing_end_says_so() -> None:
    """With the operator's name."""

    def fail() -> Work:
        raise ValueError("user code")

    head = chain(node(Relay()), node(Custom(lambda one: (one,), on_end=fail), "last"))
    with pytest.raises(OperatorFailure, match=r"'last'.*at the end of its input"):
        run(head.end_input())


def test_a_failing_timer_says_so() -> None:
    """With what the operator was doing."""

    def fail() -> Work:
        raise ValueError("user code")

    with pytest.raises(OperatorFailure, match=r"'timed'.*in a timer"):
        run(node(Relay(), "timed").drive_action(fail, "in a timer"))


def test_a_failing_source_names_the_place() -> None:
    """A timestamp assigner that raises is reported with the place of its record."""

    class Source(Relay):
        def position(self) -> int | None:
            return 2

    def work() -> Work:
        yield batch(1)
        raise ValueError("user code")

    unfinished = node(Source(), "clicks").drive_polled(work(), placed)
    with pytest.raises(OperatorFailure, match=r"'clicks'.*reading its source.*clicks\[3\]@1002"):
        run(unfinished)


def test_an_operator_is_busy_only_while_it_works() -> None:
    """The watchdog tells by it whose work is under way."""
    head = node(PerRecord())
    work = head.push(batch(1, 2))
    assert work is not None
    next(work)
    assert head.busy
    run(work)
    assert not head.busy
