"""What the builders of Kafka sources and sinks have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from connectors.kafka.arguments import check_arguments
from connectors.kafka.options import Options
from operators.advice import Advising


class KafkaBuilder(Advising, ABC):
    """Collects the arguments of a source or sink, and settings of its client."""

    def __init__(self) -> None:
        self._arguments: dict[str, Any] = {}
        self._properties: dict[str, object] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Addresses of brokers, ``host:port``, with commas between them."""
        return self._set(bootstrap_servers=bootstrap_servers)

    def set_property(self, key: str, value: object) -> Self:
        """A setting of the client by its dotted Kafka name.

        Raises:
            KafkaOptionError: the name is unknown or the value does not fit.
        """
        self._known_options().with_option(key, value)
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, object]) -> Self:
        """Several settings; see `set_property`."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    @abstractmethod
    def _known_options(self) -> Options:
        """The settings that there are, at their defaults."""

    def _set(self, **arguments: Any) -> Self:
        check_arguments(arguments)
        self._arguments.update(arguments)
        return self
