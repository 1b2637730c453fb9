"""Map, filter and flat-map."""

from collections.abc import Iterator

import pytest

from operators.elements import RecordBatch
from operators.functions import MapFunction
from operators.runtime_context import RuntimeContext
from operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from operators.stream_operator import BATCH_RECORDS_MAX, StreamOperator
from tests.operators.fakes import Driver, FakeContext


def batches(operator: StreamOperator, batch: RecordBatch) -> list[RecordBatch]:
    return [b for b in operator.process_batch(batch) if isinstance(b, RecordBatch)]


def fails_at_three(value: int) -> int:
    if value == 3:
        raise KeyError("ts")
    return value


def test_map_keeps_timestamps_and_origins() -> None:
    """One record out for each one in."""
    origin = "clicks@{}".format
    (out,) = batches(MapOperator(str), RecordBatch([1, 2], [10, None], None, origin))
    assert (out.values, out.timestamps, out.keys) == (["1", "2"], [10, None], None)
    assert out.origin is origin


def test_filter_keeps_timestamps_and_origins_of_what_stays() -> None:
    """Whatever counts as true stays; a place is looked up by the new index."""
    batch = RecordBatch([0, 1, 2, 3], [10, 11, 12, 13], None, "clicks@{}".format)
    (out,) = batches(FilterOperator(lambda value: value % 2), batch)
    assert (out.values, out.timestamps) == ([1, 3], [11, 13])
    assert out.origin is not None
    assert out.origin(1) == "clicks@3"


def test_filter_puts_out_no_empty_batch() -> None:
    """Where nothing stays nothing comes out."""
    assert batches(FilterOperator(lambda _: False), RecordBatch([1, 2])) == []


def test_flat_map_results_carry_the_timestamp_of_their_record() -> None:
    """None means none; any iterable but the doubtful ones will do."""
    results = {1: None, 2: [20, 21], 3: iter([30])}
    (out,) = batches(FlatMapOperator(results.get), RecordBatch([1, 2, 3], [5, 6, 7]))
    assert (out.values, out.timestamps) == ([20, 21, 30], [6, 6, 7])


def test_flat_map_of_an_endless_record_is_handed_on_in_full_batches() -> None:
    """While it is inside the record it says so; the batch before the end is never held back."""

    def endless(value: int) -> Iterator[int]:
        while True:
            yield value

    operator = FlatMapOperator(endless)
    work = iter(operator.process_batch(RecordBatch([7])))
    for _ in range(3):
        out = next(work)
        assert isinstance(out, RecordBatch)
        assert len(out) == BATCH_RECORDS_MAX
        assert operator.in_record


@pytest.mark.parametrize("result", ["text", b"bytes", (1, 2), {"a": 1}, 5])
def test_flat_map_refuses_what_is_hardly_meant_as_an_iterable(result: object) -> None:
    """The hint says what to write."""
    with pytest.raises(TypeError, match="write `yield"):
        batches(FlatMapOperator(lambda _: result), RecordBatch([1]))


@pytest.mark.parametrize("operator_class", [MapOperator, FilterOperator, FlatMapOperator])
def test_position_names_the_record_that_failed(
    operator_class: type[MapOperator | FilterOperator | FlatMapOperator],
) -> None:
    """The user's exception passes through untouched."""

    def function(value: int) -> object:
        return [fails_at_three(value)]

    operator = operator_class(function)
    assert operator.position() is None
    with pytest.raises(KeyError, match="ts"):
        batches(operator, RecordBatch([1, 2, 3, 4]))
    assert operator.position() == 2


@pytest.mark.parametrize("operator_class", [MapOperator, FilterOperator])
def test_stop_iteration_of_a_function_does_not_lose_records(
    operator_class: type[MapOperator | FilterOperator],
) -> None:
    """It must not be taken for the end of the batch."""
    empty: Iterator[int] = iter(())
    with pytest.raises(RuntimeError, match="StopIteration"):
        batches(operator_class(lambda _: next(empty)), RecordBatch([1, 2]))


class Life(MapFunction[int, int]):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append(runtime_context.get_task_name_with_subtasks())

    def map(self, value: int) -> int:
        return value

    def close(self) -> None:
        self.calls.append("close")


def test_a_function_is_opened_and_closed_once() -> None:
    """It learns in `open` where it runs."""
    function = Life()
    operator = MapOperator(function)
    Driver(operator, FakeContext())
    operator.close()
    operator.close()
    assert function.calls == ["operator (1/1)", "close"]


def test_a_function_that_was_never_opened_is_not_closed() -> None:
    """It holds nothing yet."""
    function = Life()
    MapOperator(function).close()
    assert function.calls == []


def test_an_async_open_is_refused() -> None:
    """It would never run."""

    class Async(Life):
        async def open(self, runtime_context: RuntimeContext) -> None:  # type: ignore[override]  # on purpose
            raise AssertionError

    with pytest.raises(TypeError, match=r"Async\.open is async"):
        Driver(MapOperator(Async()), FakeContext())
