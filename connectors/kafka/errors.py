"""What goes wrong between a job and Kafka; every message says what, where and what to do."""

from __future__ import annotations

from operators.errors import PermanentError, UnreachableError


class KafkaConnectorError(RuntimeError):
    """A source or sink of Kafka cannot go on; it fails the job."""


class KafkaUnreachableError(KafkaConnectorError, UnreachableError):
    """No broker answered within the configured time."""


class KafkaTopicError(KafkaConnectorError, PermanentError):
    """A topic or partition is missing, was deleted or may not be accessed.

    Permanent: a job that waits through its restarts for a topic looks as if it ran.
    """


class KafkaOffsetError(KafkaConnectorError, PermanentError):
    """An offset to read from is not there (any more)."""


class KafkaRecordError(KafkaConnectorError, PermanentError):
    """A record could not be deserialized, serialized or written; the next start meets it again."""
