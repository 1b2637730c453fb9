"""Apache Kafka as source and sink of a job, and a real local broker (`connectors.kafka.local`)."""

from connectors.delivery_guarantee import DeliveryGuarantee
from connectors.kafka.decoding import KafkaRecord, KafkaRecordDeserializationSchema
from connectors.kafka.errors import (
    KafkaConnectorError,
    KafkaOffsetError,
    KafkaRecordError,
    KafkaTopicError,
    KafkaUnreachableError,
)
from connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from connectors.kafka.options import KafkaOptionError
from connectors.kafka.serialization import (
    KafkaProducerRecord,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from connectors.kafka.topic_partition import KafkaTopicPartition

__all__ = [
    "DeliveryGuarantee",
    "KafkaConnectorError",
    "KafkaOffsetError",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaOptionError",
    "KafkaProducerRecord",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordError",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicError",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "KafkaUnreachableError",
]
