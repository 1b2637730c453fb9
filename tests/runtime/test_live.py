"""The live line: what it says, and that it stays out of the way."""

import io
import sys

import pytest

from runtime.clock import SimulatedClock
from runtime.job_result import JobStatistics, JobStatus
from runtime.live import CLEAR_LINE, LAST_WATERMARK_MS, format_line, format_time, live_line


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """True."""
        return True


def running(records_in: int, records_out: int) -> JobStatistics:
    """Figures of a running job with a checkpoint at 8 s."""
    return JobStatistics(
        status=JobStatus.RUNNING,
        records_in=records_in,
        records_out=records_out,
        watermark_ms=1_700_000_000_000,
        last_checkpoint_id=17,
        last_checkpoint_ms=8_000,
    )


def test_the_line_shows_rates_watermark_and_checkpoint() -> None:
    """Rates are over the time since the figures before."""
    line = format_line("counts", running(1_000, 10), running(51_000, 110), 2_000, 11_500)
    assert line == (
        "counts: running | in 25,000/s | out 50/s | watermark 2023-11-14 22:13:20 | "
        "checkpoint 17, 3 s ago"
    )


@pytest.mark.parametrize(
    ("watermark_ms", "text"),
    [
        (None, "-"),
        (LAST_WATERMARK_MS, "end"),
        (-(2**63), str(-(2**63))),
        (0, "1970-01-01 00:00:00"),
    ],
)
def test_every_watermark_has_a_text(watermark_ms: int | None, text: str) -> None:
    """Also those that are no time of any calendar."""
    assert format_time(watermark_ms) == text


def test_the_line_is_drawn_each_second_and_taken_away_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a terminal."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    clock = SimulatedClock()
    with live_line("counts", lambda: running(0, 0), clock):
        clock.advance_by(2_000)
    assert terminal.getvalue().count("counts: running") == 2
    assert terminal.getvalue().endswith(CLEAR_LINE)
    assert clock.next_call_ms() is None


def test_what_is_written_meanwhile_does_not_run_into_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The line is cleared first, on the stream that others write to as well."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", terminal)
    clock = SimulatedClock()
    with live_line("counts", lambda: running(0, 0), clock):
        clock.advance_by(1_000)
        print("result")
    assert f"{CLEAR_LINE}result\n" in terminal.getvalue()
    assert sys.stdout is terminal


@pytest.mark.parametrize(("stream", "wanted"), [(io.StringIO, True), (Terminal, False)])
def test_a_pipe_or_a_quiet_terminal_has_no_line(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], wanted: bool
) -> None:
    """Nothing is written and nothing scheduled."""
    target = stream()
    monkeypatch.setattr(sys, "stderr", target)
    clock = SimulatedClock()
    with live_line("counts", lambda: running(0, 0), clock, wanted=wanted):
        clock.advance_by(5_000)
    assert target.getvalue() == ""
