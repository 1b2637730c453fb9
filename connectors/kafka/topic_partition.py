"""Partitions, and which subtask of a source reads which of them."""

from __future__ import annotations

from dataclasses import dataclass

from statebackends.keygroups import java_string_hash


@dataclass(frozen=True, slots=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic (PyFlink: `KafkaTopicPartition`)."""

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str):
            raise TypeError(f"a topic is a str, not {self.topic!r}")
        if not self.topic:
            raise ValueError("a topic has a name")
        whole_number(self.partition, "a partition")

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


def whole_number(value: object, what: str) -> None:
    """Raises `ValueError` for anything but an int of at least 0."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{what} is an int of at least 0, not {value!r}")


def split_owner(topic: str, partition: int, parallelism: int) -> int:
    """The index of the subtask that reads a partition.

    Partitions of a topic go round the subtasks, from a start that the topic's name decides
    (Flink: `KafkaSourceEnumerator.getSplitOwner`).
    """
    start = ((java_string_hash(topic) * 31) & 0x7FFFFFFF) % parallelism
    return (start + partition) % parallelism
