"""A bounded source over a topic that a real broker has compacted."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.connectors.kafka.bounded_job import values_read
from tests.connectors.kafka.produced import consume, produce
from tests.connectors.kafka.stand_in_context import bounded, running
from tests.kafka_fixtures import BrokerMaker, create_topic_at


async def test_gaps_of_compaction_do_not_hide_the_end(
    local_broker: BrokerMaker, tmp_path: Path
) -> None:
    """The records that are left are read, and source and job end by themselves."""
    broker = local_broker({"log.cleaner.backoff.ms": "200"})
    await asyncio.to_thread(broker.start)
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "1",
    }
    create_topic_at(broker.bootstrap, "compacted", config=config)
    written = 0
    async with asyncio.timeout(60):
        while True:
            # Each write rolls the segment, so that all before it can be compacted.
            await produce(broker.bootstrap, "compacted", [b"%d" % written, b"1"])
            await produce(broker.bootstrap, "compacted", [None], key=b"gone")
            written += 3
            left = await consume(broker.bootstrap, "compacted")
            if len(left) < written - 3:
                break
    async with running(bounded(broker.bootstrap, "compacted")) as job:
        values = await job.read_all()
    printed = await asyncio.to_thread(values_read, tmp_path, broker.bootstrap, "compacted")
    # Compaction may go on meanwhile: what was read lies between what was left before and after.
    after = await consume(broker.bootstrap, "compacted")
    assert len(after) <= len(printed) <= len(values) <= len(left) < written
