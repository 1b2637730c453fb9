"""The Kafka source and its builder."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Generic, Self, TypeVar

from connectors.kafka.arguments import check_arguments
from connectors.kafka.builder import KafkaBuilder
from connectors.kafka.decoding import (
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    RecordDecoder,
    ValueDecoder,
    WholeRecordDecoder,
)
from connectors.kafka.enumerator import KafkaSplitEnumerator
from connectors.kafka.offsets import KafkaOffsetsInitializer
from connectors.kafka.options import KafkaOptionError, Options, source_options
from connectors.kafka.reader import KafkaSourceReader
from connectors.kafka.settings import SourceSettings
from connectors.kafka.subscription import Subscription
from connectors.kafka.topic_partition import KafkaTopicPartition
from connectors.schemas import DeserializationSchema
from operators.output_tag import OutputTag
from operators.source import (
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitEnumerator,
    SplitEnumeratorContext,
)

T = TypeVar("T")


class KafkaSource(Source[T]):
    """Reads the partitions of Kafka topics (PyFlink: `KafkaSource`).

    Starts at the earliest offsets and never ends, unless told otherwise. New partitions are
    found every ten seconds and read from their beginning. Positions belong to the checkpoints;
    offsets committed to the group serve monitoring only.

    Each argument is what the method of the same meaning of `KafkaSourceBuilder` takes; further
    ones are settings of the client by aiokafka's names.

    Args:
        bootstrap_servers: see `set_bootstrap_servers`.
        topics: a topic or several; see `set_topics`.
        topic_pattern: see `set_topic_pattern`.
        partitions: see `set_partitions`.
        group_id: see `set_group_id`.
        starting_offsets: see `set_starting_offsets`.
        bounded: see `set_bounded`.
        unbounded: see `set_unbounded`.
        value_deserializer: see `set_value_only_deserializer`.
        deserializer: see `set_deserializer`.
        deserialization_errors: see `set_deserialization_errors`.
        expired_offsets: see `set_expired_offsets`.
        properties: see `set_properties`.
        client_options: settings by aiokafka's names.

    Raises:
        KafkaOptionError: something is missing, unknown or contradictory.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str | Collection[str] = "",
        topics: str | Iterable[str] = (),
        topic_pattern: str | re.Pattern[str] | None = None,
        partitions: Iterable[KafkaTopicPartition] = (),
        group_id: str | None = None,
        starting_offsets: KafkaOffsetsInitializer | None = None,
        bounded: KafkaOffsetsInitializer | None = None,
        unbounded: KafkaOffsetsInitializer | None = None,
        value_deserializer: Callable[[bytes], T] | DeserializationSchema[T] | None = None,
        deserializer: Callable[[KafkaRecord], T]
        | KafkaRecordDeserializationSchema[T]
        | None = None,
        deserialization_errors: str | OutputTag[Any] = "fail",
        expired_offsets: str = "fail",
        properties: Mapping[str, object] | None = None,
        **client_options: object,
    ) -> None:
        check_arguments(
            {
                "bootstrap_servers": bootstrap_servers,
                "topic_pattern": topic_pattern,
                "group_id": group_id,
                "starting_offsets": starting_offsets,
                "bounded": bounded,
                "unbounded": unbounded,
                "value_deserializer": value_deserializer,
                "deserializer": deserializer,
            }
        )
        if bounded is not None and unbounded is not None:
            raise KafkaOptionError("a KafkaSource takes one of bounded and unbounded, not both")
        named = {"bootstrap_servers": bootstrap_servers or None, "group_id": group_id}
        self.settings = SourceSettings(
            options=source_options().with_options(properties, client_options, named),
            subscription=Subscription(
                topics=(topics,) if isinstance(topics, str) else tuple(dict.fromkeys(topics)),
                pattern=None if topic_pattern is None else re.compile(topic_pattern),
                partitions=frozenset(partitions),
            ),
            starting_offsets=starting_offsets or KafkaOffsetsInitializer.earliest(),
            stopping_offsets=bounded or unbounded,
            bounded=bounded is not None,
            decoder=_decoder(value_deserializer, deserializer),
            deserialization_errors=deserialization_errors,
            expired_offsets=expired_offsets,
        )

    @staticmethod
    def builder() -> KafkaSourceBuilder[Any]:
        """A builder with nothing set."""
        return KafkaSourceBuilder()

    @property
    def boundedness(self) -> Boundedness:
        """Bounded if stopping offsets were set by `set_bounded`."""
        bounded = self.settings.bounded
        return Boundedness.BOUNDED if bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_reader(self, context: SourceReaderContext) -> SourceReader[T]:
        """See `Source`."""
        return KafkaSourceReader(context, self.settings)

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator:
        """See `Source`."""
        settings = self.settings
        return KafkaSplitEnumerator(
            context, settings, lambda: settings.cluster("enumerator", context.clock)
        )

    def side_tags(self) -> Iterable[str]:
        """The tag given to `set_deserialization_errors`."""
        errors = self.settings.deserialization_errors
        return (errors.tag_id,) if isinstance(errors, OutputTag) else ()

    def __repr__(self) -> str:
        return f"KafkaSource({self.settings.subscription})"


class KafkaSourceBuilder(KafkaBuilder, Generic[T]):
    """Describes a `KafkaSource` step by step (PyFlink: `KafkaSourceBuilder`)."""

    def set_group_id(self, group_id: str) -> Self:
        """The group that offsets are committed for; without one none are."""
        return self._set(group_id=group_id)

    def set_topics(self, *topics: str | Iterable[str]) -> Self:
        """Reads all partitions of these topics."""
        flat: list[str] = []
        for each in topics:
            flat += [each] if isinstance(each, str) else each
        return self._set(topics=flat)

    def set_topic_pattern(self, topic_pattern: str | re.Pattern[str]) -> Self:
        """Reads all topics whose whole name matches, also those that come later."""
        return self._set(topic_pattern=topic_pattern)

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> Self:
        """Reads just these partitions."""
        return self._set(partitions=partitions)

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Where to start without a checkpoint; earliest by default."""
        return self._set(starting_offsets=starting_offsets_initializer)

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Ends each partition at an offset fixed when the job starts, and the source with them."""
        return self._set(bounded=stopping_offsets_initializer, unbounded=None)

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Ends each partition at an offset, but never the source."""
        return self._set(unbounded=stopping_offsets_initializer, bounded=None)

    def set_value_only_deserializer(
        self, deserialization_schema: Callable[[bytes], Any] | DeserializationSchema[Any]
    ) -> KafkaSourceBuilder[Any]:
        """Makes values of the bytes of each record's value.

        It is not called for a record without value (a tombstone): that one becomes None.
        """
        return self._set(value_deserializer=deserialization_schema, deserializer=None)

    def set_deserializer(
        self,
        record_deserializer: Callable[[KafkaRecord], Any] | KafkaRecordDeserializationSchema[Any],
    ) -> KafkaSourceBuilder[Any]:
        """Makes values of whole records: key, value, headers, timestamp, place."""
        return self._set(deserializer=record_deserializer, value_deserializer=None)

    def set_deserialization_errors(self, errors: str | OutputTag[Any]) -> Self:
        """What becomes of records whose deserializer raises.

        "fail" (the default) fails the job naming topic, partition and offset, "skip" counts
        and drops them, an `OutputTag` sends (topic, partition, offset, key, value, error) to
        that side output.
        """
        return self._set(deserialization_errors=errors)

    def set_expired_offsets(self, expired_offsets: str) -> Self:
        """What to do where the offset to go on at is gone: "fail" (default), "earliest", "latest".

        Records expire when a job was down for longer than the topic's retention.
        """
        return self._set(expired_offsets=expired_offsets)

    def set_client_id_prefix(self, prefix: str) -> Self:
        """Begins the names of the clients at the brokers."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: object) -> Self:
        """A setting of the client by its dotted Kafka name.

        Also ``partition.discovery.interval.ms`` (10 s; 0 switches discovery off),
        ``commit.offsets.on.checkpoint`` (true), ``default.api.timeout.ms`` (30 s: how long
        connecting and each question to the brokers may take).

        Raises:
            KafkaOptionError: the name is unknown or the value does not fit.
        """
        return super().set_property(key, value)

    def _known_options(self) -> Options:
        return source_options()

    def build(self) -> KafkaSource[T]:
        """The source.

        Raises:
            KafkaOptionError: something is missing or contradictory.
        """
        return KafkaSource(properties=self._properties, **self._arguments)


def _decoder(value_deserializer: Any, deserializer: Any) -> RecordDecoder:
    if (value_deserializer is None) == (deserializer is None):
        raise KafkaOptionError(
            "a KafkaSource needs one of set_value_only_deserializer (a callable on bytes, "
            "json.loads for example) and set_deserializer (a callable on whole records)"
        )
    if deserializer is not None:
        return WholeRecordDecoder(deserializer)
    return ValueDecoder(value_deserializer)
