"""What a source was told, checked; shared by its enumerator and its readers."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.kafka.client import ISOLATION_LEVELS, KafkaCluster
from connectors.kafka.decoding import RecordDecoder
from connectors.kafka.offsets import KafkaOffsetsInitializer
from connectors.kafka.options import REQUEST_TIMEOUT_MS, KafkaOptionError, Options
from connectors.kafka.subscription import Subscription
from operators.output_tag import OutputTag
from statebackends.clock import Clock

TIMEOUT_SETTING = "default.api.timeout.ms"
TIMEOUT_MS = 30_000
DISCOVERY_INTERVAL_MS = 10_000
EXPIRED_OFFSETS = ("fail", "earliest", "latest")


@dataclass(frozen=True)
class SourceSettings:
    """The description of a Kafka source.

    Raises:
        KafkaOptionError: settings are missing or contradict each other.
    """

    options: Options
    subscription: Subscription
    starting_offsets: KafkaOffsetsInitializer
    stopping_offsets: KafkaOffsetsInitializer | None
    bounded: bool
    decoder: RecordDecoder
    deserialization_errors: str | OutputTag[object]
    expired_offsets: str

    def __post_init__(self) -> None:
        if not self.options.bootstrap_servers:
            raise KafkaOptionError(
                "a KafkaSource needs the address of a broker: set_bootstrap_servers('host:port')"
            )
        given = (
            bool(self.subscription.topics),
            self.subscription.pattern is not None,
            bool(self.subscription.partitions),
        )
        if sum(given) != 1:
            raise KafkaOptionError(
                "a KafkaSource needs exactly one of set_topics, set_topic_pattern and "
                "set_partitions"
            )
        for initializer in (self.starting_offsets, self.stopping_offsets):
            if initializer is not None and initializer.needs_group and not self.group_id:
                raise KafkaOptionError(
                    "KafkaOffsetsInitializer.committed_offsets needs a group: set_group_id"
                )
        if self.stopping_offsets is not None and self.stopping_offsets.kind == "earliest":
            raise KafkaOptionError("a source that stops at the earliest offset reads nothing")
        errors = self.deserialization_errors
        if not isinstance(errors, OutputTag) and errors not in ("fail", "skip"):
            raise KafkaOptionError(
                f"set_deserialization_errors takes 'fail', 'skip' or an OutputTag, not {errors!r}"
            )
        if self.expired_offsets not in EXPIRED_OFFSETS:
            raise KafkaOptionError(
                f"set_expired_offsets takes one of {', '.join(EXPIRED_OFFSETS)}, "
                f"not {self.expired_offsets!r}"
            )
        wait_ms = self.options.number("fetch_max_wait_ms", 500)
        timeout_ms = self.options.number("request_timeout_ms", REQUEST_TIMEOUT_MS)
        if wait_ms >= timeout_ms:
            raise KafkaOptionError(
                f"fetch.max.wait.ms ({wait_ms}) has to be less than request.timeout.ms "
                f"({timeout_ms}), or every quiet fetch would count as unanswered"
            )
        level = self.options.text("isolation_level", "read_uncommitted")
        if level not in ISOLATION_LEVELS:
            raise KafkaOptionError(
                f"isolation.level is one of {', '.join(ISOLATION_LEVELS)}, not {level!r}"
            )

    @property
    def group_id(self) -> str:
        """The group whose offsets are read and committed; empty if there is none."""
        return self.options.text("group_id", "")

    @property
    def commits(self) -> bool:
        """Whether offsets are committed with each checkpoint."""
        return bool(self.group_id) and self.options.flag("commit_offsets_on_checkpoint", True)

    @property
    def discovery_interval_ms(self) -> int:
        """How often new partitions are looked for; 0 if never."""
        if self.bounded:
            return 0
        return max(0, self.options.number("partition_discovery_interval_ms", DISCOVERY_INTERVAL_MS))

    def cluster(self, client_id: str, clock: Clock) -> KafkaCluster:
        """A client with these settings, not yet connected."""
        timeout_ms = self.options.number("default_api_timeout_ms", TIMEOUT_MS)
        return KafkaCluster(self.options, client_id, clock, TIMEOUT_SETTING, timeout_ms)
