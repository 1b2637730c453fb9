"""`python -m benchmarks.hops`: records a second between two tasks over a channel of one record."""

from __future__ import annotations

import statistics
import sys
import time

from operators.builtin import CollectSink
from runtime import Configuration, StreamExecutionEnvironment

RECORDS = 200_000


def measure() -> float:
    """Hops per CPU second: every record waits until the one before it was taken."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(
        Configuration()
        .set_integer("riverrun.channel.capacity", 1)
        .set_integer("riverrun.batch.records", 1)
    )
    sink: CollectSink[int] = CollectSink()
    env.from_sequence(1, RECORDS).start_new_chain().map(
        lambda value: value
    ).start_new_chain().sink_to(sink)
    began = time.process_time()
    env.execute("hops")
    assert len(sink.results) == RECORDS
    return RECORDS / (time.process_time() - began)


def main() -> int:
    """Prints the median of five."""
    figures = [measure() for _ in range(5)]
    print(f"hops a second, capacity one record: {statistics.median(figures):,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
