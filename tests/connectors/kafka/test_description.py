"""What descriptions of sources and sinks refuse before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.kafka import (
    DeliveryGuarantee,
    KafkaOffsetsInitializer,
    KafkaOptionError,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from operators.source import Boundedness

SOURCE: dict[str, Any] = {
    "bootstrap_servers": "b:1",
    "topics": "t",
    "value_deserializer": bytes,
}
SINK: dict[str, Any] = {"bootstrap_servers": "b:1", "topic": "t", "value_serializer": bytes}


@pytest.mark.parametrize(
    ("builder", "name", "meant"),
    [
        (KafkaSource.builder(), "set_topic", "set_topics"),
        (KafkaSink.builder(), "set_bootstrap_server", "set_bootstrap_servers"),
        (KafkaRecordSerializationSchema.builder(), "set_topics", "set_topic"),
    ],
)
def test_a_method_that_a_builder_lacks_names_the_nearest(
    builder: object, name: str, meant: str
) -> None:
    """As streams do."""
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean '{meant}'"):
        getattr(builder, name)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bootstrap_servers": ""}, "set_bootstrap_servers"),
        ({"topics": ()}, "exactly one of set_topics"),
        ({"topic_pattern": "a.*"}, "exactly one of set_topics"),
        ({"partitions": [KafkaTopicPartition("t", 0)]}, "exactly one of set_topics"),
        ({"value_deserializer": None}, "set_value_only_deserializer"),
        ({"deserializer": bytes}, "set_value_only_deserializer"),
        ({"starting_offsets": KafkaOffsetsInitializer.committed_offsets()}, "set_group_id"),
        ({"bounded": KafkaOffsetsInitializer.earliest()}, "reads nothing"),
        ({"deserialization_errors": "ignore"}, "'fail', 'skip' or an OutputTag"),
        ({"expired_offsets": "none"}, "fail, earliest, latest"),
        ({"isolation_level": "serializable"}, "isolation.level is one of"),
        ({"fetch_max_wait_ms": 60_000}, r"less than request\.timeout\.ms"),
        ({"fetch_max_wait": 5}, "did you mean 'fetch.max.wait.ms'"),
    ],
)
def test_a_source_that_cannot_work_is_refused(changes: dict[str, Any], reason: str) -> None:
    """With what to set instead."""
    with pytest.raises(KafkaOptionError, match=reason):
        KafkaSource(**(SOURCE | changes))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bootstrap_servers": ""}, "set_bootstrap_servers"),
        ({"topic": None}, "needs a record serializer"),
        ({"delivery_guarantee": DeliveryGuarantee.EXACTLY_ONCE}, "a later version brings it"),
        ({"compression_type": "zip"}, "compression.type is one of none, gzip"),
        ({"acks": "2"}, "acks is one of all, -1, 1, 0"),
        ({"acks": "0"}, "DeliveryGuarantee.NONE only"),
    ],
)
def test_a_sink_that_cannot_work_is_refused(changes: dict[str, Any], reason: str) -> None:
    """With what to set instead."""
    with pytest.raises(KafkaOptionError, match=reason):
        KafkaSink(**(SINK | changes))


def test_the_builder_refuses_where_the_mistake_is() -> None:
    """Unknown settings and exactly-once at their own line."""
    with pytest.raises(KafkaOptionError, match="unknown Kafka setting"):
        KafkaSource.builder().set_property("no.such.thing", "1")
    with pytest.raises(KafkaOptionError, match="a later version"):
        KafkaSink.builder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(KafkaOptionError, match="a later version"):
        KafkaSink.builder().set_transactional_id_prefix("p")
    with pytest.raises(KafkaOptionError, match="set_topic or set_topic_selector"):
        KafkaRecordSerializationSchema.builder().build()
    with pytest.raises(TypeError, match="takes a callable or a schema"):
        KafkaRecordSerializationSchema.builder().set_value_serialization_schema(b"x")


def test_builder_and_keywords_describe_the_same() -> None:
    """Methods have PyFlink's names, keywords say what they set."""
    built = (
        KafkaSource.builder()
        .set_bootstrap_servers("b:1")
        .set_topics("t", "u")
        .set_group_id("g")
        .set_client_id_prefix("p")
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(bytes)
        .set_properties({"fetch.min.bytes": "2"})
        .build()
    )
    assert built.boundedness is Boundedness.BOUNDED
    assert built.settings.subscription.topics == ("t", "u")
    assert built.settings.options.values == {
        "bootstrap_servers": "b:1",
        "group_id": "g",
        "client_id_prefix": "p",
        "fetch_min_bytes": 2,
    }
    assert KafkaSource(**SOURCE).boundedness is Boundedness.CONTINUOUS_UNBOUNDED


def test_offsets_are_committed_only_for_a_group() -> None:
    """And not where that is switched off."""
    assert not KafkaSource(**SOURCE).settings.commits
    assert KafkaSource(**SOURCE, group_id="g").settings.commits
    off = KafkaSource(**SOURCE, group_id="g", commit_offsets_on_checkpoint=False)
    assert not off.settings.commits


def test_async_functions_are_refused() -> None:
    """Nobody would await what they return."""

    async def later(value: object) -> bytes:
        return b""

    with pytest.raises(TypeError, match="a deserializer is called with def, not async def"):
        KafkaSource(**(SOURCE | {"value_deserializer": later}))
    with pytest.raises(TypeError, match="the value serializer is called with def"):
        KafkaSink(**(SINK | {"value_serializer": later}))
