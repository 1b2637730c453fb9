"""What kinds of objects the arguments of Kafka sources and sinks may be."""

from __future__ import annotations

import re
from collections.abc import Mapping

from connectors.delivery_guarantee import DeliveryGuarantee
from connectors.kafka.decoding import KafkaRecordDeserializationSchema
from connectors.kafka.offsets import KafkaOffsetsInitializer
from connectors.kafka.serialization import KafkaRecordSerializationSchema, KafkaTopicSelector
from connectors.schemas import DeserializationSchema, SerializationSchema

_OFFSETS = "a KafkaOffsetsInitializer, KafkaOffsetsInitializer.earliest() for example"
_GUARANTEE = "a DeliveryGuarantee, DeliveryGuarantee.AT_LEAST_ONCE for example"

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "bootstrap_servers": (
        (str, list, tuple, set, frozenset),
        "host:port, with commas between several, or a list of them",
    ),
    "group_id": ((str,), "a string"),
    "topic_pattern": ((str, re.Pattern), "a regular expression"),
    "starting_offsets": ((KafkaOffsetsInitializer,), _OFFSETS),
    "bounded": ((KafkaOffsetsInitializer,), _OFFSETS),
    "unbounded": ((KafkaOffsetsInitializer,), _OFFSETS),
    "delivery_guarantee": ((DeliveryGuarantee,), _GUARANTEE),
    "record_serializer": (
        (KafkaRecordSerializationSchema,),
        "a KafkaRecordSerializationSchema (call build() of its builder)",
    ),
}

_CALLABLES: dict[str, tuple[tuple[type, ...], str]] = {
    "topic": ((str, KafkaTopicSelector), "a name or a callable on the record"),
    "value_deserializer": ((DeserializationSchema,), "a callable on bytes, or a schema"),
    "deserializer": ((KafkaRecordDeserializationSchema,), "a callable on a KafkaRecord"),
    "value_serializer": ((SerializationSchema,), "a callable that gives bytes, or a schema"),
    "key_serializer": ((SerializationSchema,), "a callable that gives bytes, or a schema"),
    "headers": ((), "a callable that gives pairs of name and bytes"),
    "partitioner": ((), "a callable that gives the number of a partition"),
}
"""A callable does as well."""


def check_arguments(arguments: Mapping[str, object]) -> None:
    """Raises `TypeError` for an argument that is no object of its kind; None means not given."""
    for name, value in arguments.items():
        types, what = _TYPES.get(name) or _CALLABLES.get(name) or ((object,), "")
        fits = isinstance(value, types) or (name in _CALLABLES and callable(value))
        if value is not None and not fits:
            raise TypeError(f"{name} is {what}, not {type(value).__name__} {value!r:.80}")
