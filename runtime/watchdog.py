"""Notices an event loop that user code blocks, and says where it stands."""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import traceback
from types import TracebackType
from typing import Protocol, Self

from runtime.chain import ChainNode
from statebackends.clock import Clock, ScheduledCall

logger = logging.getLogger(__name__)

HEARTBEAT_MS = 500
BLOCKED_SECONDS = 5.0
"""A loop that has not turned for this long is reported."""

DUMP_SECONDS = 30.0
"""After this long the stack is dumped even if C code keeps the interpreter lock."""


class WatchedAttempt(Protocol):
    """What the watchdog looks at to name an operator."""

    @property
    def nodes(self) -> list[ChainNode]:
        """The operators of all tasks."""


class BlockedLoopWatchdog:
    """Beats on the loop and looks from a thread whether the beat goes on.

    The thread names the user's line that blocks. Where C code holds the interpreter lock no
    thread of ours runs: then `faulthandler`, which has a thread outside of the interpreter, dumps
    the stack to stderr.
    """

    def __init__(self, clock: Clock, attempt: WatchedAttempt, *, enabled: bool = True) -> None:
        self._clock = clock
        self._attempt = attempt
        self._enabled = enabled
        self._beat = 0
        self._ended = threading.Event()
        self._call: ScheduledCall | None = None
        self._loop_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        if self._enabled:
            self._on_beat()
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._enabled:
            self._ended.set()
            if self._call is not None:
                self._call.cancel()
            faulthandler.cancel_dump_traceback_later()
            self._thread.join(timeout=1.0)

    def _on_beat(self) -> None:
        self._beat += 1
        check = getattr(self._clock, "check_wall_clock", None)
        if check is not None:
            check()
        if self._beat % 2:
            # Re-arming costs up to 0.2 ms, so not at each beat.
            faulthandler.dump_traceback_later(DUMP_SECONDS, file=sys.__stderr__ or sys.stderr)
        self._call = self._clock.call_at(self._clock.now_ms() + HEARTBEAT_MS, self._on_beat)

    def _watch(self) -> None:
        reported = -1
        while True:
            beat = self._beat
            if self._ended.wait(BLOCKED_SECONDS):
                return
            if self._beat == beat and reported != beat:
                reported = beat
                logger.warning("%s", self._describe())

    def _describe(self) -> str:
        stack = sys._current_frames().get(self._loop_thread)
        where = "".join(traceback.format_stack(stack)[-3:]) if stack is not None else ""
        busy = [node for node in self._attempt.nodes if node.busy]
        name = busy[-1].context.operator_name if busy else "unknown"
        return (
            f"the event loop has been blocked for {BLOCKED_SECONDS:g} s in operator {name!r}:"
            " nothing else of the job runs meanwhile; move blocking calls out of the function"
            f" (asyncio.to_thread, an async client)\n{where}"
        )
