"""Bytes that one key costs on the heap beyond its own objects.

The figure is (memory with 1,000,000 integers under keys of 20 characters - memory with none -
sizes of the keys and values themselves) / 1,000,000, in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from statebackends.descriptors import ValueStateDescriptor
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import DEFAULT_MAX_PARALLELISM, key_group_range

BAR_BYTES = 300
_PAGES_AT = 1


def resident_bytes() -> int:
    """Resident memory of this process, by /proc."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[_PAGES_AT])
    return pages * resource.getpagesize()


def overhead_per_key(keys: int) -> float:
    """Bytes of memory per key beside the key and value objects."""
    backend = HeapKeyedStateBackend(
        key_group_range(DEFAULT_MAX_PARALLELISM, 1, 0), DEFAULT_MAX_PARALLELISM
    )
    state = backend.get_partitioned_state(ValueStateDescriptor("count", int))
    gc.collect()
    before = resident_bytes()
    own = 0
    for number in range(keys):
        key = f"key-{number:016d}"
        value = number + 1_000_000
        own += sys.getsizeof(key) + sys.getsizeof(value)
        backend.set_current_key(key)
        state.update(value)  # type: ignore[attr-defined]  # the handle of a value descriptor
    gc.collect()
    return (resident_bytes() - before - own) / keys


def main() -> None:
    """Prints the figure and whether it is below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    figure = overhead_per_key(parser.parse_args().keys)
    verdict = "below" if figure < BAR_BYTES else "ABOVE"
    print(f"{figure:.0f} bytes per key, {verdict} the bar of {BAR_BYTES}")


if __name__ == "__main__":
    main()
