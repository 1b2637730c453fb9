"""What goes wrong between a job and Kafka; every message says what, where and what to do."""

from __future__ import annotations


class KafkaConnectorError(RuntimeError):
    """A source or sink of Kafka cannot go on; it fails the job."""


class KafkaUnreachableError(KafkaConnectorError):
    """No broker answered within the configured time."""


class KafkaTopicError(KafkaConnectorError):
    """A topic or partition is missing, was deleted or may not be accessed."""


class KafkaOffsetError(KafkaConnectorError):
    """An offset to read from is not there (any more)."""


class KafkaRecordError(KafkaConnectorError):
    """A record could not be deserialized, serialized or written."""
