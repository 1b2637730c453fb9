"""The Kafka sink and its builder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from connectors.delivery_guarantee import DeliveryGuarantee
from connectors.kafka.arguments import check_arguments
from connectors.kafka.builder import KafkaBuilder
from connectors.kafka.options import KafkaOptionError, Options, sink_options
from connectors.kafka.serialization import (
    BuiltSerializationSchema,
    KafkaRecordSerializationSchema,
    KafkaTopicSelector,
)
from connectors.kafka.writer import KafkaWriter
from connectors.schemas import SerializationSchema
from operators.sink import Sink, SinkWriter, SinkWriterContext

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_NOT_YET = (
    "DeliveryGuarantee.EXACTLY_ONCE of the Kafka sink is not there yet, a later version brings "
    "it; use AT_LEAST_ONCE, whose consumers see some records twice after a failure"
)
_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


@dataclass(frozen=True)
class SinkSettings:
    """The description of a Kafka sink.

    Raises:
        KafkaOptionError: settings are missing or contradict each other.
    """

    options: Options
    serializer: KafkaRecordSerializationSchema[Any]
    guarantee: DeliveryGuarantee

    def __post_init__(self) -> None:
        if not self.options.bootstrap_servers:
            raise KafkaOptionError(
                "a KafkaSink needs the address of a broker: set_bootstrap_servers('host:port')"
            )
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise KafkaOptionError(_NOT_YET)
        compression = self.options.text("compression_type", "none")
        if compression not in _COMPRESSIONS:
            raise KafkaOptionError(
                f"compression.type is one of {', '.join(_COMPRESSIONS)}, not {compression!r}"
            )
        acks = self.options.text("acks", "all")
        if acks not in _ACKS:
            raise KafkaOptionError(f"acks is one of {', '.join(_ACKS)}, not {acks!r}")
        if _ACKS[acks] == 0 and self.guarantee is not DeliveryGuarantee.NONE:
            raise KafkaOptionError(
                "acks=0 tells of no loss, so it goes with DeliveryGuarantee.NONE only"
            )

    @property
    def acks(self) -> int:
        """How many replicas acknowledge a record: -1 for all, 1 or 0."""
        return _ACKS[self.options.text("acks", "all")]


class KafkaSink(Sink[T_contra]):
    """Writes records to Kafka topics (PyFlink: `KafkaSink`), at-least-once unless told otherwise.

    The topics have to exist: the sink creates none. Keyword construction stands beside the
    builder; further arguments are settings of the client by aiokafka's names.

    Args:
        bootstrap_servers: see `KafkaSinkBuilder.set_bootstrap_servers`.
        record_serializer: how records are made; or instead of it the next five.
        topic: a topic, or a callable or selector that chooses one by the value.
        value_serializer: a callable or schema that makes the bytes of a value.
        key_serializer: the same for keys.
        headers: a callable that makes the headers.
        partitioner: see `KafkaRecordSerializationSchemaBuilder.set_partitioner`.
        delivery_guarantee: see `KafkaSinkBuilder.set_delivery_guarantee`.
        properties: see `KafkaSinkBuilder.set_property`.
        client_options: settings by aiokafka's names.

    Raises:
        KafkaOptionError: something is missing, unknown or contradictory.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str | Collection[str] = "",
        record_serializer: KafkaRecordSerializationSchema[T_contra] | None = None,
        topic: str | Callable[[Any], str] | KafkaTopicSelector | None = None,
        value_serializer: Callable[[Any], bytes | None] | SerializationSchema[Any] | None = None,
        key_serializer: Callable[[Any], bytes | None] | SerializationSchema[Any] | None = None,
        headers: Callable[[Any], Iterable[tuple[str, bytes | None]]] | None = None,
        partitioner: Callable[..., int] | None = None,
        delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
        properties: Mapping[str, object] | None = None,
        **client_options: object,
    ) -> None:
        check_arguments(
            {
                "bootstrap_servers": bootstrap_servers,
                "topic": topic,
                "value_serializer": value_serializer,
                "key_serializer": key_serializer,
                "headers": headers,
                "partitioner": partitioner,
                "record_serializer": record_serializer,
                "delivery_guarantee": delivery_guarantee,
            }
        )
        if record_serializer is None:
            if topic is None or value_serializer is None:
                raise KafkaOptionError(
                    "a KafkaSink needs a record serializer, or topic and value_serializer"
                )
            record_serializer = BuiltSerializationSchema(
                topic, value_serializer, key_serializer, headers, partitioner
            )
        named = {"bootstrap_servers": bootstrap_servers or None}
        options = sink_options().with_options(properties, client_options, named)
        self.settings = SinkSettings(options, record_serializer, delivery_guarantee)

    @staticmethod
    def builder() -> KafkaSinkBuilder[Any]:
        """A builder with nothing set."""
        return KafkaSinkBuilder()

    def create_writer(self, context: SinkWriterContext) -> SinkWriter[T_contra]:
        """See `Sink`."""
        settings = self.settings
        waits = settings.guarantee is not DeliveryGuarantee.NONE
        return KafkaWriter(context, settings.options, settings.serializer, settings.acks, waits)

    def __repr__(self) -> str:
        topic = self.settings.serializer.topic
        return f"KafkaSink({topic if topic is not None else 'topic by value'})"


class KafkaSinkBuilder(KafkaBuilder, Generic[T]):
    """Describes a `KafkaSink` step by step (PyFlink: `KafkaSinkBuilder`)."""

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """AT_LEAST_ONCE (the default) or NONE.

        Raises:
            KafkaOptionError: EXACTLY_ONCE, which a later version brings.
        """
        if delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise KafkaOptionError(_NOT_YET)
        return self._set(delivery_guarantee=delivery_guarantee)

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> Self:
        """Raises `KafkaOptionError`: it serves EXACTLY_ONCE, which a later version brings."""
        raise KafkaOptionError(f"set_transactional_id_prefix: {_NOT_YET}")

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema[Any]) -> Self:
        """How records are made; see `KafkaRecordSerializationSchema.builder`."""
        return self._set(record_serializer=record_serializer)

    def set_property(self, key: str, value: object) -> Self:
        """A setting of the client by its dotted Kafka name.

        Also ``max.block.ms`` (30 s: how long connecting and looking for a topic may take),
        ``delivery.timeout.ms`` (30 s: how long an acknowledgement may take),
        ``buffer.memory`` (16 MiB: unacknowledged bytes before the job is held back).

        Raises:
            KafkaOptionError: the name is unknown or the value does not fit.
        """
        return super().set_property(key, value)

    def _known_options(self) -> Options:
        return sink_options()

    def build(self) -> KafkaSink[T]:
        """The sink.

        Raises:
            KafkaOptionError: something is missing or contradictory.
        """
        return KafkaSink(properties=self._properties, **self._arguments)
