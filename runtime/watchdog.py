"""Notices an event loop that user code blocks, and says where it stands."""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import traceback
from types import FrameType, TracebackType
from typing import Protocol, Self

from runtime.chain import ChainNode
from runtime.failure_report import INTERNAL_FOLDERS
from runtime.fusion import FusedStages
from runtime.task import Task
from statebackends.clock import Clock, ScheduledCall

logger = logging.getLogger(__name__)

HEARTBEAT_MS = 500
BLOCKED_SECONDS = 5.0
"""A loop that has not turned for this long is reported."""

DUMP_SECONDS = 30.0
"""After this long the stack is dumped even if C code keeps the interpreter lock."""

LOOKS = 5
"""How often the thread looks within the time after which it reports."""

_TASK_FILE = Task.run.__code__.co_filename

FRAMES_MAX = 6
"""Most frames of a report: where user code begins, and where it stands."""


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

    def __init__(
        self,
        clock: Clock,
        attempt: WatchedAttempt,
        *,
        enabled: bool = True,
        heartbeat_ms: int = HEARTBEAT_MS,
        blocked_seconds: float = BLOCKED_SECONDS,
        dump_seconds: float = DUMP_SECONDS,
    ) -> None:
        self._clock = clock
        self._attempt = attempt
        self._enabled = enabled
        self._heartbeat_ms = heartbeat_ms
        self._blocked_seconds = blocked_seconds
        self._dump_seconds = dump_seconds
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
            faulthandler.dump_traceback_later(self._dump_seconds, file=sys.__stderr__ or sys.stderr)
        self._call = self._clock.call_at(self._clock.now_ms() + self._heartbeat_ms, self._on_beat)

    def _watch(self) -> None:
        beat = looks = 0
        while not self._ended.wait(self._blocked_seconds / LOOKS):
            if self._beat != beat:
                beat, looks = self._beat, 0
                continue
            looks += 1
            if looks == LOOKS:
                logger.warning("%s", self._describe())

    def _describe(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)
        return (
            f"the event loop has been blocked for {self._blocked_seconds:g} s in operator"
            f" {self._operator_in(frame)!r}: nothing else of the job runs meanwhile, no checkpoint"
            " either; have the function wait for nothing (a source or sink of your own may: its"
            f" methods can be async) and do long work in pieces\n{_where(frame)}"
        )

    def _operator_in(self, frame: FrameType | None) -> str:
        """The operator that the loop is in; others may be busy as well, but suspended."""
        inner: FrameType | None = None
        while frame is not None:
            owner = frame.f_locals.get("self")
            if isinstance(owner, FusedStages) and inner is not None:
                stage = owner.stage_at(inner.f_code, inner.f_lasti)
                if stage is not None:
                    return stage.context.operator_name
            # Where operators are opened, told or cut, the runtime's loop variable has the node.
            for node in (frame.f_locals.get("node"), owner):
                if isinstance(node, ChainNode):
                    return node.context.operator_name
            if isinstance(owner, Task):
                # No chain in between: it polls its source.
                return owner.head.context.operator_name
            frame, inner = frame.f_back, frame
        busy = [node for node in self._attempt.nodes if node.busy]
        return busy[-1].context.operator_name if busy else "unknown"


def _where(frame: FrameType | None) -> str:
    """The user's part of a stack: from the first line of user code within the job on."""
    frames = traceback.extract_stack(frame) if frame is not None else []
    internal = [one.filename.startswith(INTERNAL_FOLDERS) for one in frames]
    # Below the job there may be the user's main program, which runs it.
    task = next((i for i, one in enumerate(frames) if one.filename == _TASK_FILE), 0)
    begin = next((i for i in range(task, len(frames)) if not internal[i]), None)
    shown = frames[-FRAMES_MAX:] if begin is None else frames[begin:]
    if len(shown) > FRAMES_MAX:
        shown = shown[: FRAMES_MAX // 2] + shown[-(FRAMES_MAX // 2) :]
    return "".join(traceback.format_list(shown))
