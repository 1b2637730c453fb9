"""Watches a job from inside its event loop: a ticker, garbage collections, forks, queues.

A job that is measured runs as `execute` runs it (uvloop, the settings of its process), but in a
loop that this module owns, so that what is measured shares the loop with the job.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from runtime import JobClient, StreamExecutionEnvironment
from runtime.channel import Channel
from runtime.checkpoint_statistics import CheckpointStatistics
from runtime.job import JobRun
from runtime.process_settings import job_process_settings
from runtime.thread_work import counted_executor
from statebackends.heap import HeapKeyedStateBackend

TICK_SECONDS = 0.001

Watch = Callable[["Observed"], Awaitable[None]]


class Ticker:
    """Wakes each millisecond and notes when it did and how long after the time before.

    Other load of the machine stops the whole process. So the CPU time of the loop's thread between
    two ticks is noted as well: what the job itself did in that time, which no neighbour lengthens.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.times = array("d")
        self.gaps = array("d")
        self.cpu_gaps = array("d")
        self._loop = loop
        self._last = self._last_cpu = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Ticks until `stop`."""
        self._last = time.perf_counter()
        self._last_cpu = time.thread_time()
        self._handle = self._loop.call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """Ends the ticking."""
        if self._handle is not None:
            self._handle.cancel()

    def _tick(self) -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        self.times.append(now)
        self.gaps.append(now - self._last)
        self.cpu_gaps.append(cpu - self._last_cpu)
        self._last, self._last_cpu = now, cpu
        self._handle = self._loop.call_later(TICK_SECONDS, self._tick)

    def between(self, begin: float, end: float, *, cpu: bool = False) -> list[float]:
        """The gaps in seconds that ended between two moments of `perf_counter`, sorted."""
        pairs = zip(self.times, self.cpu_gaps if cpu else self.gaps, strict=True)
        return sorted(gap for moment, gap in pairs if begin <= moment <= end)


@dataclass(frozen=True, slots=True)
class Pause:
    """Something that stopped the process, with its begin and length in seconds."""

    at: float
    seconds: float
    cpu_seconds: float
    generation: int = -1
    """Of a garbage collection."""

    def __str__(self) -> str:
        generation = f", generation {self.generation}" if self.generation >= 0 else ""
        return f"{self.seconds * 1000:.2f} ms (CPU {self.cpu_seconds * 1000:.2f}{generation})"


NO_PAUSE = Pause(0.0, 0.0, 0.0)


@dataclass
class Pauses:
    """What stopped the process so far."""

    collections: list[Pause] = field(default_factory=list)
    forks: list[Pause] = field(default_factory=list)

    def longest_collection(self, begin: float = 0.0) -> Pause:
        """The longest collection since `begin`."""
        return longest(self.collections, begin)

    def longest_fork(self, begin: float = 0.0) -> Pause:
        """The longest fork since `begin`."""
        return longest(self.forks, begin)


def longest(pauses: list[Pause], begin: float) -> Pause:
    """The longest pause since `begin`; one of no length if there was none."""
    since = (pause for pause in pauses if pause.at >= begin)
    return max(since, key=lambda pause: pause.seconds, default=NO_PAUSE)


def _pause_since(at: float, cpu: float, generation: int = -1) -> Pause:
    return Pause(at, time.perf_counter() - at, time.thread_time() - cpu, generation)


@contextmanager
def noted_pauses() -> Iterator[Pauses]:
    """Notes collections and forks of this process."""
    pauses = Pauses()
    began = (0.0, 0.0)
    fork = os.fork

    def on_collection(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter(), time.thread_time()
        else:
            pauses.collections.append(_pause_since(*began, info["generation"]))

    def timed_fork() -> int:
        at, cpu = time.perf_counter(), time.thread_time()
        pid = fork()
        if pid:
            pauses.forks.append(_pause_since(at, cpu))
        return pid

    gc.callbacks.append(on_collection)
    os.fork = timed_fork
    try:
        yield pauses
    finally:
        os.fork = fork
        gc.callbacks.remove(on_collection)


class Observed:
    """A job that runs, and what is seen of it."""

    def __init__(self, client: JobClient, ticker: Ticker, pauses: Pauses) -> None:
        self.client = client
        self.ticker = ticker
        self.pauses = pauses
        self.began = time.perf_counter()

    @property
    def run(self) -> JobRun:
        """The run behind the client; the figures it has are not all public."""
        run = self.client._job._run
        assert run is not None
        return run

    @property
    def channels(self) -> list[Channel]:
        """The channels of the attempt that runs."""
        attempt = self.run._attempt
        return [] if attempt is None else attempt.deployment.channels

    @property
    def backends(self) -> list[HeapKeyedStateBackend]:
        """The keyed states of the attempt that runs."""
        attempt = self.run._attempt
        backends = [] if attempt is None else attempt.deployment.backends
        return [backend for backend in backends if isinstance(backend, HeapKeyedStateBackend)]

    @property
    def checkpoints(self) -> CheckpointStatistics:
        """What the coordinator counts."""
        attempt = self.run._attempt
        if attempt is None or attempt.driver is None:
            return CheckpointStatistics()
        return attempt.driver.coordinator.statistics()

    async def until(self, condition: Callable[[], bool], *, seconds: float = 600.0) -> None:
        """Waits until `condition` holds; TimeoutError after `seconds`, or as the job ends."""
        end = time.perf_counter() + seconds
        while not condition():
            if time.perf_counter() > end or self.client._job.future.done():
                raise TimeoutError("what was waited for did not come")
            await asyncio.sleep(0.01)


def observe(
    build: Callable[[StreamExecutionEnvironment], object], name: str, watch: Watch
) -> Observed:
    """Runs the job that `build` makes while `watch` looks on; then stops it if it still runs."""

    async def main() -> Observed:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(counted_executor())
        env = StreamExecutionEnvironment.get_execution_environment()
        build(env)
        ticker = Ticker(loop)
        with noted_pauses() as pauses:
            client = env.execute_async(name)
            observed = Observed(client, ticker, pauses)
            await observed.until(lambda: client._job._run is not None)
            ticker.start()
            try:
                await watch(observed)
            finally:
                ticker.stop()
                if not client._job.future.done():
                    client.cancel()
            await client
        return observed

    with job_process_settings(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def quantile(ordered: list[float], share: float) -> float:
    """The value below which `share` of an ordered list lies."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def milliseconds(seconds: float) -> str:
    """A duration for a table."""
    return f"{seconds * 1000:.2f} ms"


def row(what: str, figure: str, bar: str = "", met: bool | None = None) -> None:
    """Prints one line of a table."""
    verdict = "" if met is None else "met" if met else "MISSED"
    print(f"{what:58} {figure:>16}  {bar:20} {verdict}".rstrip(), flush=True)


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process, by /proc."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
