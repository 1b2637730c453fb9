"""The names of aiokafka that the connector uses; no other module of it imports aiokafka.

The connector speaks Kafka's protocol through aiokafka's client, so it uses parts that are no
public interface. They are collected and checked here, so that another version of aiokafka is
one clear error at import and not a surprise in a running job.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

WANTED = "aiokafka >= 0.14, < 0.15"

try:
    from aiokafka import AIOKafkaProducer
    from aiokafka import errors as kafka_errors
    from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
    from aiokafka.conn import create_conn
    from aiokafka.helpers import create_ssl_context
    from aiokafka.partitioner import murmur2
    from aiokafka.producer.sender import Sender
    from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
    from aiokafka.protocol.fetch import FetchRequest
    from aiokafka.protocol.metadata import MetadataRequest
    from aiokafka.protocol.offset import OffsetRequest
    from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
    from aiokafka.record.memory_records import MemoryRecords
    from aiokafka.structs import TopicPartition
except ImportError as error:
    raise ImportError(
        f"the Kafka connector needs {WANTED}, which is not what is installed "
        f"({error}); install it with: pip install 'aiokafka>=0.14,<0.15'"
    ) from error

__all__ = [
    "ABORT_MARKER",
    "AIOKafkaClient",
    "AIOKafkaProducer",
    "ConnectionGroup",
    "ControlRecord",
    "CoordinationType",
    "FetchRequest",
    "MemoryRecords",
    "MetadataRequest",
    "OffsetCommitRequest",
    "OffsetFetchRequest",
    "OffsetRequest",
    "TopicPartition",
    "create_conn",
    "create_ssl_context",
    "kafka_errors",
    "murmur2",
]

# What is used of each class beyond its public methods.
_INTERNALS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        AIOKafkaClient,
        ("_metadata_update", "_get_conn", "bootstrap", "coordinator_lookup", "send"),
    ),
    (AIOKafkaProducer, ("create_batch", "send_batch", "start", "stop")),
    (Sender, ("sender_task",)),
    (MemoryRecords, ("has_next", "next_batch", "size_in_bytes")),
)


def missing_internals(internals: tuple[tuple[Any, tuple[str, ...]], ...] = _INTERNALS) -> list[str]:
    """The names that this connector needs and the installed aiokafka lacks."""
    return [
        f"{owner.__name__}.{name}"
        for owner, names in internals
        for name in names
        if not hasattr(owner, name)
    ]


def check(internals: tuple[tuple[Any, tuple[str, ...]], ...] = _INTERNALS) -> None:
    """Raises `ImportError` naming what the installed aiokafka lacks."""
    missing = missing_internals(internals)
    if missing:
        raise ImportError(
            f"the Kafka connector needs {WANTED}; version {metadata.version('aiokafka')} "
            f"is installed and lacks {', '.join(missing)}"
        )


check()
