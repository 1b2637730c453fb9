"""The line of figures that a terminal shows while a job runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO, cast

from runtime.job_result import JobStatistics
from statebackends.clock import Clock, ScheduledCall

INTERVAL_MS = 1_000
CLEAR_LINE = "\r\x1b[K"
LAST_WATERMARK_MS = 2**63 - 1
"""The watermark of a stream that has ended."""


def format_line(
    name: str, before: JobStatistics, now: JobStatistics, elapsed_ms: int, now_ms: int
) -> str:
    """The figures of a job: rates since `before`, the rest as of `now`."""
    seconds = max(elapsed_ms, 1) / 1_000
    parts = [
        f"{name}: {now.status.value}",
        f"in {(now.records_in - before.records_in) / seconds:,.0f}/s",
        f"out {(now.records_out - before.records_out) / seconds:,.0f}/s",
        f"watermark {format_time(now.watermark_ms)}",
    ]
    if now.last_checkpoint_id is not None and now.last_checkpoint_ms is not None:
        age_seconds = max(now_ms - now.last_checkpoint_ms, 0) // 1_000
        parts.append(f"checkpoint {now.last_checkpoint_id}, {age_seconds} s ago")
    if now.restarts:
        parts.append(f"restarts {now.restarts}")
    return " | ".join(parts)


def format_time(timestamp_ms: int | None) -> str:
    """A watermark as a time of day in UTC; as a number where that makes no sense."""
    if timestamp_ms is None:
        return "-"
    if timestamp_ms == LAST_WATERMARK_MS:
        return "end"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1_000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


class LiveLine:
    """Draws the line each second on `stream`, and takes it away while others write.

    Other writers to the same terminal go through `around`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._text = ""

    @contextmanager
    def following(
        self, name: str, statistics: Callable[[], JobStatistics], clock: Clock
    ) -> Iterator[None]:
        """Shows the job's figures while inside."""
        before = statistics()
        before_ms = clock.now_ms()
        call: ScheduledCall | None = None

        def tick() -> None:
            nonlocal before, before_ms, call
            now, now_ms = statistics(), clock.now_ms()
            self.show(format_line(name, before, now, now_ms - before_ms, now_ms))
            before, before_ms = now, now_ms
            call = clock.call_at(now_ms + INTERVAL_MS, tick)

        call = clock.call_at(before_ms + INTERVAL_MS, tick)
        try:
            yield
        finally:
            call.cancel()
            self.show("")

    def show(self, text: str) -> None:
        """Draws `text` instead of what is there, cut to the width of the terminal."""
        if text or self._text:
            self._text = text[: shutil.get_terminal_size().columns - 1]
            self._stream.write(CLEAR_LINE + self._text)
            self._stream.flush()

    def around(self, other: TextIO) -> TextIO:
        """`other` such that what is written to it does not run into the line."""
        # All that it does not have of a text stream itself comes from the one behind.
        return cast(TextIO, _ClearingStream(other, self))

    def hide(self) -> None:
        """Takes the line away until it is drawn again."""
        if self._text:
            self.show("")


class _ClearingStream:
    """A stream on the same terminal: takes the line away before it writes."""

    def __init__(self, stream: TextIO, line: LiveLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        self._line.hide()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def live_line(
    name: str, statistics: Callable[[], JobStatistics], clock: Clock, *, wanted: bool = True
) -> Iterator[None]:
    """Shows a job's figures on standard error while inside, if that is a terminal."""
    stream = sys.stderr
    if not wanted or stream is None or not stream.isatty():
        yield
        return
    line = LiveLine(stream)
    stdout = sys.stdout
    sys.stderr = line.around(stream)
    if stdout is not None and stdout.isatty():
        sys.stdout = line.around(stdout)
    try:
        with line.following(name, statistics, clock):
            yield
    finally:
        sys.stderr, sys.stdout = stream, stdout
