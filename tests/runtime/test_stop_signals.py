"""Signals: the first stops, the second leaves, and handlers from before come back."""

import signal
from collections.abc import Iterator
from typing import cast

import pytest

from runtime.job_handle import JobHandle
from runtime.stop_signals import SECOND_SIGNAL_SECONDS, StopSignals, exit_code


class Process:
    """A process whose jobs, time and end a test can see."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.left: list[int] = []
        self.stops: list[str] = []
        self.signals = StopSignals(lambda: self.seconds, self.left.append)

    def job(self) -> JobHandle:
        """A job that only notes requests to stop."""
        return cast(JobHandle, self)

    def request_stop(self, reason: str) -> None:
        """Notes the request."""
        self.stops.append(reason)


@pytest.fixture
def process() -> Iterator[Process]:
    """A process; the test's own handlers are put back afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield Process()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_for_a_stop(process: Process, number: int, code: int) -> None:
    """It is remembered for the exit code."""
    with process.signals.stopping(process.job()):
        signal.raise_signal(number)
    assert len(process.stops) == 1
    assert process.left == []
    received = process.signals.received
    assert received is not None
    assert exit_code(received) == code


def test_a_second_signal_right_after_the_first_is_the_same_request(process: Process) -> None:
    """A terminal sends it to each process of the group, and supervisors repeat themselves."""
    with process.signals.stopping(process.job()):
        signal.raise_signal(signal.SIGINT)
        process.seconds += SECOND_SIGNAL_SECONDS * 0.9
        signal.raise_signal(signal.SIGINT)
    assert process.left == []


def test_a_second_signal_later_leaves_at_once(process: Process) -> None:
    """Of either kind."""
    with process.signals.stopping(process.job()):
        signal.raise_signal(signal.SIGINT)
        process.seconds += SECOND_SIGNAL_SECONDS * 1.1
        signal.raise_signal(signal.SIGTERM)
    assert process.left == [143]


def test_handlers_from_before_are_in_force_again_after_the_job(process: Process) -> None:
    """The program's own reaction to signals is only suspended."""
    heard: list[int] = []

    def own(number: int, _frame: object) -> None:
        heard.append(number)

    signal.signal(signal.SIGTERM, own)
    with process.signals.stopping(process.job()):
        signal.raise_signal(signal.SIGTERM)
    assert heard == []
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is own


def test_a_signal_after_the_last_job_goes_to_the_handler_from_before(process: Process) -> None:
    """Also where the end of the job could not put it back, in another thread."""
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    job = process.job()
    process.signals.watch(job)
    process.signals._jobs.remove(job)
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]
    assert process.stops == []
