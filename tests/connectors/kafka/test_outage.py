"""A broker that goes away and comes back while a job reads and writes."""

from __future__ import annotations

import json
import logging

import pytest

from connectors.kafka import KafkaSink, KafkaSource
from tests.connectors.kafka.produced import consume, produce
from tests.connectors.kafka.stand_in_context import running, writing
from tests.kafka_fixtures import BrokerMaker, create_topic_at


async def test_reading_and_writing_go_on_after_a_broker_was_killed(
    local_broker: BrokerMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """No record is lost or read twice, and the log has a few lines about it, not hundreds."""
    broker = local_broker()
    broker.start()
    for topic in ("in", "out"):
        create_topic_at(broker.bootstrap, topic)
    await produce(broker.bootstrap, "in", [b"1", b"2"])
    source = KafkaSource(
        bootstrap_servers=broker.bootstrap,
        topics="in",
        value_deserializer=json.loads,
        properties={"partition.discovery.interval.ms": "500"},
    )
    sink = KafkaSink(
        bootstrap_servers=broker.bootstrap, topic="out", value_serializer=lambda n: b"%d" % n
    )
    logging.getLogger("aiokafka").setLevel(logging.NOTSET)
    async with running(source) as job, writing(sink) as (writer, context):
        values = await job.read(2)
        writer.write(values, None)
        await writer.flush(False)
        caplog.clear()
        broker.kill()
        writer.write([98, 99], None)
        broker.start()
        await produce(broker.bootstrap, "in", [b"3", b"4"])
        values += await job.read(2)
        await writer.flush(False)
        assert context.failures == []
    assert values == [1, 2, 3, 4]
    written = [record.value for record in await consume(broker.bootstrap, "out")]
    assert written == [b"1", b"2", b"98", b"99"]
    assert len([each for each in caplog.records if each.levelno >= logging.WARNING]) < 12
