"""Counts clicks per page in windows of ten seconds of event time.

    python -m runtime examples/windowed_counts.py [-- --bootstrap-servers localhost:9092]

Without a broker the clicks are generated: 200 seconds of them, a little out of order, in two
seconds. With one they are read from topic clicks, as JSON such as {"page": "home", "ts": 1700000},
and the counts are written to topic clicks-counts.
"""

from __future__ import annotations

import argparse
import json
from datetime import timedelta
from typing import TypedDict

from connectors.datagen import DataGeneratorSource
from runtime import (
    DataStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
    WindowCount,
)

PAGES = ["home", "home", "home", "search", "search", "cart", "checkout"]


class Click(TypedDict):
    """A visit to a page, at a time in milliseconds."""

    page: str
    ts: int


def make_click(number: int) -> Click:
    """Click `number` of a made-up site: one each 10 ms, up to 2 s late."""
    disorder = number * 7919 % 2000
    return Click(page=PAGES[number * 31 % 101 % len(PAGES)], ts=10 * number + 2000 - disorder)


def line(count: WindowCount) -> str:
    """A result for a reader."""
    return f"{count.start / 1000:6.0f} s  {count.key:<10} {count.count:>6}"


def counts(clicks: DataStream[Click]) -> DataStream[WindowCount]:
    """How often each page was visited in each window."""
    windows = TumblingEventTimeWindows.of(timedelta(seconds=10))
    return clicks.key_by(lambda click: click["page"]).window(windows).count().uid("counts")


def main() -> None:
    parser = argparse.ArgumentParser(description="counts clicks per page in windows of 10 s")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="of a Kafka broker")
    parser.add_argument("--topic", default="clicks", help="of clicks (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=10_000, help="of generated clicks a second")
    options = parser.parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    lateness = WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=2))
    watermarks = lateness.with_timestamp_assigner(lambda click, _: click["ts"])
    if options.bootstrap_servers is None:
        generated = DataGeneratorSource(make_click, count=20_000, rate_limiter=options.rate)
        counts(env.from_source(generated, watermarks, "clicks")).map(line).print()
    else:
        from connectors.kafka import KafkaSink, KafkaSource

        broker, topic = options.bootstrap_servers, options.topic
        source = KafkaSource[Click].builder().set_bootstrap_servers(broker).set_topics(topic)
        source.set_value_only_deserializer(json.loads)
        clicks = env.from_source(source.build(), watermarks, "clicks")
        sink = KafkaSink[str](
            bootstrap_servers=broker, topic=f"{topic}-counts", value_serializer=str.encode
        )
        counts(clicks).map(lambda count: json.dumps(count._asdict())).sink_to(sink)
    env.execute("page counts")


if __name__ == "__main__":
    main()
