"""T1: a million event-time timers are registered, a quarter deleted, the rest fired.

    python -m benchmarks.timers [--timers N] [--runs N]

Times are CPU nanoseconds per timer, medians of the runs, which are interleaved between the
queues. Workloads:

* exact: each timer at a random millisecond (timers of a keyed process function), 10,000 keys;
  timers are fired one by one in 1,000 watermark steps;
* window ends, single: 10,000 keys in windows of 1 s, registered record by record (each timer is
  registered by four records), fired one by one;
* window ends, batched: the same, registered by `add_all` of a batch of 1,000 keys and fired in
  groups of at most 1,000.
"""

import argparse
import gc
import random
import time
from collections.abc import Callable, Hashable
from statistics import median

from benchmarks.lazy_heap_queue import LazyHeapTimerQueue
from statebackends.bucket_queue import BucketTimerQueue
from statebackends.heap_timer_queue import HeapTimerQueue
from statebackends.keygroups import KeyGroupRange
from statebackends.timer_queue import TimerQueue

KEYS = 10_000
STEPS = 1_000
REPEATS = 4
ALL_GROUPS = KeyGroupRange(0, 127)
KEY_GROUP_OF: dict[Hashable, int] = {f"key-{n}": n % len(ALL_GROUPS) for n in range(KEYS)}

QUEUES: dict[str, Callable[[], TimerQueue]] = {
    "buckets by timestamp": BucketTimerQueue,
    "heapq, lazy deletion": LazyHeapTimerQueue,
    "indexed heap set": lambda: HeapTimerQueue.heap(KEY_GROUP_OF.__getitem__, ALL_GROUPS),
    "heap per key group": lambda: HeapTimerQueue.partitioned(KEY_GROUP_OF.__getitem__, ALL_GROUPS),
}

Times = dict[str, float]


def timed(work: Callable[[], int]) -> float:
    """CPU nanoseconds per unit of work."""
    before = time.process_time_ns()
    units = work()
    return (time.process_time_ns() - before) / units


def fire_singly(queue: TimerQueue, end: int) -> int:
    fired = 0
    poll = queue.poll
    for step in range(1, STEPS + 1):
        limit = end * step // STEPS
        while poll(limit) is not None:
            fired += 1
    assert len(queue) == 0
    return fired


def fire_groups(queue: TimerQueue, end: int) -> int:
    fired = 0
    for step in range(1, STEPS + 1):
        limit = end * step // STEPS
        while (group := queue.poll_group(limit, 1000)) is not None:
            fired += len(group.keys)
    assert len(queue) == 0
    return fired


def exact(queue: TimerQueue, timers: int) -> Times:
    dice = random.Random(1)
    keys = list(KEY_GROUP_OF)
    end = timers * 10
    plan = [(dice.randrange(1, end), dice.choice(keys)) for _ in range(timers)]
    deleted = plan[::4]

    def register() -> int:
        add = queue.add
        for timestamp, key in plan:
            add(timestamp, key, None)
        return timers

    def delete() -> int:
        remove = queue.remove
        for timestamp, key in deleted:
            remove(timestamp, key, None)
        return len(deleted)

    return {
        "register": timed(register),
        "delete": timed(delete),
        "fire": timed(lambda: fire_singly(queue, end)),
    }


def window_ends(timers: int) -> list[tuple[int, tuple[int, int], list[Hashable]]]:
    """Per window its end, itself and the keys that have records in it."""
    keys = list(KEY_GROUP_OF)
    ends = range(1000, 1000 * (timers // KEYS + 1), 1000)
    return [(end - 1, (end - 1000, end), keys) for end in ends]


def windows_single(queue: TimerQueue, timers: int) -> Times:
    windows = window_ends(timers)

    def register() -> int:
        add = queue.add
        for timestamp, window, keys in windows:
            for _ in range(REPEATS):
                for key in keys:
                    add(timestamp, key, window)
        return len(windows) * KEYS * REPEATS

    def delete() -> int:
        remove = queue.remove
        for timestamp, window, keys in windows:
            for key in keys[::4]:
                remove(timestamp, key, window)
        return len(windows) * KEYS // 4

    return {
        "register": timed(register),
        "delete": timed(delete),
        "fire": timed(lambda: fire_singly(queue, windows[-1][0])),
    }


def windows_batched(queue: TimerQueue, timers: int) -> Times:
    windows = window_ends(timers)

    def register() -> int:
        for timestamp, window, keys in windows:
            for first in range(0, KEYS, 1000):
                queue.add_all(timestamp, keys[first : first + 1000], window)
        return len(windows) * KEYS

    return {
        "register": timed(register),
        "fire": timed(lambda: fire_groups(queue, windows[-1][0])),
    }


WORKLOADS: dict[str, Callable[[TimerQueue, int], Times]] = {
    "exact": exact,
    "window ends, single": windows_single,
    "window ends, batched": windows_batched,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--timers", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for workload, run in WORKLOADS.items():
        results: dict[str, list[Times]] = {name: [] for name in QUEUES}
        for _ in range(options.runs):
            for name, make in QUEUES.items():
                results[name].append(run(make(), options.timers))
                gc.collect()
        print(
            f"\n{workload}: {options.timers:,} timers, CPU ns per timer, median of {options.runs}"
        )
        for name, times in results.items():
            steps = {step: median(each[step] for each in times) for step in times[0]}
            print(f"  {name:22}", *(f"{step} {value:8.0f}" for step, value in steps.items()))


if __name__ == "__main__":
    main()
