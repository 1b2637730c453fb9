"""Which partitions a source reads: of a list of topics, of a pattern, or given one by one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from connectors.kafka.topic_partition import KafkaTopicPartition


@dataclass(frozen=True)
class Subscription:
    """Exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[KafkaTopicPartition] = frozenset()

    def __post_init__(self) -> None:
        for given, kind in ((self.topics, str), (self.partitions, KafkaTopicPartition)):
            for each in given:
                if not isinstance(each, kind):
                    raise TypeError(
                        f"a KafkaSource takes each as {kind.__name__}, not {each!r:.80}"
                    )

    @property
    def wanted_topics(self) -> list[str] | None:
        """The topics to ask Kafka about; None asks about all."""
        if self.pattern is not None:
            return None
        return sorted({*self.topics, *(each.topic for each in self.partitions)})

    def covers(self, partition: KafkaTopicPartition) -> bool:
        """Whether a partition belongs to the subscription."""
        if self.pattern is not None:
            return self.pattern.fullmatch(partition.topic) is not None
        return partition.topic in self.topics or partition in self.partitions

    def missing(self, found: Mapping[str, Collection[int]]) -> list[str]:
        """Topics and partitions named one by one that are not among those that Kafka has.

        A pattern that matches nothing misses nothing: its topics may come later.
        """
        return [topic for topic in self.topics if topic not in found] + [
            str(each)
            for each in sorted(self.partitions)
            if each.partition not in found.get(each.topic, ())
        ]

    def select(self, found: Mapping[str, Collection[int]]) -> set[KafkaTopicPartition]:
        """The subscribed ones of all partitions that Kafka has, by topic."""
        every = {
            KafkaTopicPartition(topic, number)
            for topic, numbers in found.items()
            for number in numbers
        }
        return {each for each in every if self.covers(each)}

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics like {self.pattern.pattern!r}"
        return ", ".join([*self.topics, *map(str, sorted(self.partitions))])
