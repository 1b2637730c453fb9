"""Arguments of the wrong kind are refused where they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connectors.kafka import KafkaOffsetsInitializer, KafkaSink, KafkaSource

SOURCE: dict[str, Any] = {
    "bootstrap_servers": "localhost:1",
    "topics": "clicks",
    "value_deserializer": bytes,
}
SINK: dict[str, Any] = {
    "bootstrap_servers": "localhost:1",
    "topic": "counts",
    "value_serializer": str.encode,
}


@pytest.mark.parametrize(
    ("argument", "wrong", "wanted"),
    [
        ("starting_offsets", "earliest", "KafkaOffsetsInitializer.earliest"),
        ("bounded", 5, "a KafkaOffsetsInitializer"),
        ("group_id", 5, "a string"),
        ("bootstrap_servers", 9092, "host:port"),
        ("topic_pattern", 5, "a regular expression"),
        ("value_deserializer", "json", "a callable on bytes"),
        ("topics", [5], "as str"),
        ("partitions", ["clicks-0"], "as KafkaTopicPartition"),
    ],
)
def test_of_a_source(argument: str, wrong: object, wanted: str) -> None:
    """The message says what it takes."""
    with pytest.raises(TypeError, match=wanted):
        KafkaSource(**{**SOURCE, argument: wrong})


@pytest.mark.parametrize(
    ("argument", "wrong", "wanted"),
    [
        ("delivery_guarantee", "exactly-once", "DeliveryGuarantee.AT_LEAST_ONCE"),
        ("topic", 5, "a name or a callable"),
        ("value_serializer", "utf-8", "a callable that gives bytes"),
        ("key_serializer", 5, "a callable that gives bytes"),
        ("headers", {"a": b""}, "a callable that gives pairs"),
        ("partitioner", 0, "the number of a partition"),
        ("record_serializer", str, "call build"),
    ],
)
def test_of_a_sink(argument: str, wrong: object, wanted: str) -> None:
    """The message says what it takes."""
    with pytest.raises(TypeError, match=wanted):
        KafkaSink(**{**SINK, argument: wrong})


@pytest.mark.parametrize(
    "step",
    [
        lambda: KafkaSource.builder().set_starting_offsets("earliest"),  # type: ignore[arg-type]  # the mistake
        lambda: KafkaSource.builder().set_bounded(5),  # type: ignore[arg-type]  # the mistake
        lambda: KafkaSink.builder().set_delivery_guarantee("none"),  # type: ignore[arg-type]  # the mistake
        lambda: KafkaOffsetsInitializer.offsets(5),  # type: ignore[arg-type]  # the mistake
    ],
)
def test_of_the_steps_of_a_builder(step: Callable[[], object]) -> None:
    """At the step, not at `build`."""
    with pytest.raises(TypeError):
        step()
