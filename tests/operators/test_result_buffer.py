"""Results between a job and the code that iterates over them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from operators.builtin import CollectSink
from operators.result_buffer import CloseableIterator, ResultBuffer
from tests.operators.attempt import Attempt


def no_job() -> None:
    """Stops nothing."""


def test_results_come_in_order_until_the_end() -> None:
    """The end of the job ends the iteration, after all results."""
    results: ResultBuffer[int] = ResultBuffer()
    results.put([1, 2])
    results.finish()
    assert list(CloseableIterator(results, no_job)) == [1, 2]


def test_an_error_of_the_job_comes_after_the_results() -> None:
    """What was put out before the failure is not lost."""
    results: ResultBuffer[int] = ResultBuffer()
    results.put([1])
    results.finish(OSError("broker gone"))
    iterator = CloseableIterator(results, no_job)
    assert iterator.next() == 1
    with pytest.raises(OSError, match="broker gone"):
        iterator.next()


def test_the_first_end_counts() -> None:
    """A stop that follows a failure does not hide it."""
    results: ResultBuffer[int] = ResultBuffer()
    results.finish(OSError("first"))
    results.finish()
    with pytest.raises(OSError, match="first"):
        results.take()


def test_leaving_early_stops_the_job_once() -> None:
    """The iterator is a context manager; closing again does nothing."""
    stops = []
    results: ResultBuffer[int] = ResultBuffer()
    results.put([1, 2, 3])
    with CloseableIterator(results, lambda: stops.append("stop")) as iterator:
        assert next(iterator) == 1
    iterator.close()
    assert stops == ["stop"]
    assert list(iterator) == []


def test_the_bound_holds_the_job_back_until_results_are_taken() -> None:
    """Room is announced once, when there is some again."""
    calls = []
    results: ResultBuffer[int] = ResultBuffer(results_max=2)
    results.on_room(lambda: calls.append("room"))
    results.put([1, 2, 3])
    assert not results.has_room
    results.take()
    assert calls == []
    results.take()
    assert results.has_room
    results.take()
    assert calls == ["room"]


def test_closing_frees_a_job_that_is_held_back() -> None:
    """A job waiting for room could not stop otherwise."""
    calls = []
    results: ResultBuffer[int] = ResultBuffer(results_max=1)
    results.on_room(lambda: calls.append("room"))
    results.put([1, 2])
    CloseableIterator(results, no_job).close()
    assert calls == ["room"]
    results.put([3, 4])
    assert results.has_room


def test_a_consumer_in_another_thread_waits_for_results() -> None:
    """Taking blocks until something comes."""
    results: ResultBuffer[int] = ResultBuffer()
    taken: list[int] = []
    consumer = threading.Thread(target=lambda: taken.extend(CloseableIterator(results, no_job)))
    consumer.start()
    results.put([1])
    results.put([2])
    results.finish()
    consumer.join(timeout=10)
    assert taken == [1, 2]


async def test_a_collect_sink_fills_the_buffer_and_is_woken() -> None:
    """The writer has room as long as the buffer has, and the task hears of new room."""
    attempt = Attempt()
    results: ResultBuffer[int] = ResultBuffer(results_max=1)
    writer = CollectSink(results).create_writer(attempt)
    await writer.start()
    writer.write([1], None)
    assert not writer.has_room
    results.take()
    await writer.flush(end_of_input=False)
    assert writer.has_room
    await asyncio.sleep(0)
    assert attempt.events == ["room freed"]
