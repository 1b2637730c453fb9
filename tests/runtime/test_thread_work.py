"""A loop makes way for threads only while they have something to do."""

import threading
from itertools import pairwise

import pytest

from runtime import thread_work
from runtime.thread_work import THREAD_WORK, ThreadWork, counted_executor


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When a loop made way, by a clock that stands at the number of its readings, in ms."""
    now = [0.0]
    found: list[float] = []

    def read() -> float:
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr(thread_work, "turn_seconds", read)
    monkeypatch.setattr(thread_work, "give_way_to_threads", lambda: found.append(now[0]))
    return found


def test_a_loop_without_thread_work_never_pauses(moments: list[float]) -> None:
    """Not even the clock is read."""
    work = ThreadWork()
    for _ in range(100):
        work.pause()
    assert moments == []


def test_outstanding_work_gets_moments_at_a_distance(moments: list[float]) -> None:
    """Short turns do not pause each."""
    work = ThreadWork()
    work.begin()
    for _ in range(100):
        work.pause()
    assert len(moments) > 10
    gaps = [later - sooner for sooner, later in pairwise(moments)]
    assert min(gaps) >= thread_work.WORK_SECONDS
    work.end()
    before = len(moments)
    work.pause()
    assert len(moments) == before


def test_what_an_executor_was_given_is_outstanding_until_it_has_ended() -> None:
    """Also what fails."""
    before = THREAD_WORK.outstanding
    go = threading.Event()
    with counted_executor() as executor:
        future = executor.submit(go.wait, 10)
        failing = executor.submit(int, "no number")
        assert THREAD_WORK.outstanding >= before + 1
        go.set()
        assert future.result()
        assert isinstance(failing.exception(), ValueError)
    assert THREAD_WORK.outstanding == before
    with pytest.raises(RuntimeError):
        executor.submit(int)
    assert THREAD_WORK.outstanding == before
