"""Turns values into Kafka's records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from connectors.kafka.options import KafkaOptionError
from connectors.schemas import SerializationSchema, check_plain
from operators.advice import Advising

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Headers = Sequence[tuple[str, bytes | None]]
Partitioner = Callable[[Any, bytes | None, bytes | None, str, list[int]], int]
"""``(element, key, value, topic, partitions) -> partition`` (Flink: `FlinkKafkaPartitioner`)."""


class KafkaProducerRecord(NamedTuple):
    """A record to be written.

    A value of None is a tombstone. Without `partition` the key decides as in Kafka's own
    clients; records without key go round. Without `timestamp` (ms) it is the time of writing.
    """

    topic: str
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


class KafkaTopicSelector(ABC):
    """Chooses the topic of each record (PyFlink: `KafkaTopicSelector`)."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic for a value."""


class KafkaRecordSerializationSchema(ABC, Generic[T_contra]):
    """Makes records of values (PyFlink: `KafkaRecordSerializationSchema`).

    Built by `builder`, or derived from where that is not enough.
    """

    topic: str | None = None
    """The topic of all records, where it is one: it is then looked for at the start."""

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """A builder with nothing set."""
        return KafkaRecordSerializationSchemaBuilder()

    def open(self) -> None:
        """Prepares the schema; called once for each subtask before the first record."""

    @abstractmethod
    def serialize(
        self, element: T_contra, timestamp: int | None, partitions_of: Callable[[str], list[int]]
    ) -> KafkaProducerRecord | None:
        """The record for a value; None writes nothing.

        Args:
            element: the value.
            timestamp: its event time in ms, None if it has none.
            partitions_of: the partitions of a topic, ascending; empty while they are not known.
        """


class BuiltSerializationSchema(KafkaRecordSerializationSchema[Any]):
    """What the builder makes."""

    def __init__(
        self,
        topic: str | Callable[[Any], str] | KafkaTopicSelector,
        value: Callable[[Any], bytes | None] | SerializationSchema[Any],
        key: Callable[[Any], bytes | None] | SerializationSchema[Any] | None = None,
        headers: Callable[[Any], Iterable[tuple[str, bytes | None]]] | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        for function, what in (
            (topic, "the topic selector"),
            (value, "the value serializer"),
            (key, "the key serializer"),
            (headers, "the header provider"),
            (partitioner, "the partitioner"),
        ):
            check_plain(function, what)
        self.topic = topic if isinstance(topic, str) else None
        self._schemas = [each for each in (key, value) if isinstance(each, SerializationSchema)]
        self._topic_of: Any = topic.apply if isinstance(topic, KafkaTopicSelector) else topic
        self._value_of: Any = value.serialize if isinstance(value, SerializationSchema) else value
        self._key_of: Any = key.serialize if isinstance(key, SerializationSchema) else key
        self._headers_of = headers
        self._partitioner = partitioner

    def open(self) -> None:
        """Opens both schemas."""
        for schema in self._schemas:
            schema.open()

    def serialize(
        self, element: Any, timestamp: int | None, partitions_of: Callable[[str], list[int]]
    ) -> KafkaProducerRecord:
        """See `KafkaRecordSerializationSchema`."""
        topic = self.topic if self.topic is not None else self._topic_of(element)
        key = None if self._key_of is None else self._key_of(element)
        value = None if element is None else self._value_of(element)
        headers = () if self._headers_of is None else list(self._headers_of(element))
        partition = None
        if self._partitioner is not None:
            partition = self._partitioner(element, key, value, topic, partitions_of(topic))
        return KafkaProducerRecord(topic, key, value, headers, partition, timestamp)


class KafkaRecordSerializationSchemaBuilder(Advising):
    """Describes how records are made (PyFlink: `KafkaRecordSerializationSchemaBuilder`)."""

    def __init__(self) -> None:
        self._topic: Any = None
        self._key: Any = None
        self._value: Any = None
        self._headers: Any = None
        self._partitioner: Partitioner | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """The topic of all records."""
        if not isinstance(topic, str):
            raise TypeError(f"set_topic takes a str, not {topic!r}; see set_topic_selector")
        self._topic = topic
        return self

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Chooses the topic of each record by its value."""
        _check_callable(topic_selector, "set_topic_selector", KafkaTopicSelector)
        self._topic = topic_selector
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: Callable[[Any], bytes | None] | SerializationSchema[Any]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes the key of the value; without it records have none."""
        _check_callable(
            key_serialization_schema, "set_key_serialization_schema", SerializationSchema
        )
        self._key = key_serialization_schema
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: Callable[[Any], bytes | None] | SerializationSchema[Any]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes the bytes of the value; None makes a tombstone, and None is one uncalled."""
        _check_callable(
            value_serialization_schema, "set_value_serialization_schema", SerializationSchema
        )
        self._value = value_serialization_schema
        return self

    def set_header_provider(
        self, header_provider: Callable[[Any], Iterable[tuple[str, bytes | None]]]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Makes the headers: (name, bytes or None) pairs."""
        _check_callable(header_provider, "set_header_provider", ())
        self._headers = header_provider
        return self

    def set_partitioner(self, partitioner: Partitioner) -> KafkaRecordSerializationSchemaBuilder:
        """Chooses the partition; without it Kafka's default does."""
        _check_callable(partitioner, "set_partitioner", ())
        self._partitioner = partitioner
        return self

    def build(self) -> KafkaRecordSerializationSchema[Any]:
        """The schema.

        Raises:
            KafkaOptionError: topic or value serializer is missing.
        """
        if self._topic is None:
            raise KafkaOptionError("a Kafka sink needs set_topic or set_topic_selector")
        if self._value is None:
            raise KafkaOptionError("a Kafka sink needs set_value_serialization_schema")
        return BuiltSerializationSchema(
            self._topic, self._value, self._key, self._headers, self._partitioner
        )


def _check_callable(given: object, method: str, schema: Any) -> None:
    if not callable(given) and not isinstance(given, schema):
        raise TypeError(f"{method} takes a callable or a schema, not {given!r:.80}")
