"""Apache Kafka as source and sink of a job, and a real local broker (`connectors.kafka.local`)."""

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
from connectors.kafka.source import KafkaSource, KafkaSourceBuilder
from connectors.kafka.topic_partition import KafkaTopicPartition

__all__ = [
    "KafkaConnectorError",
    "KafkaOffsetError",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaOptionError",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordError",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicError",
    "KafkaTopicPartition",
    "KafkaUnreachableError",
]
