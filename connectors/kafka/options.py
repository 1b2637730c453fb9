"""Settings of the Kafka clients: dotted names as in Kafka, or aiokafka's keywords.

``fetch.max.wait.ms`` (`set_property`) and ``fetch_max_wait_ms`` (keyword) are one setting.
Values may be strings and are converted. Unknown names are refused with the nearest known one,
and names that the connector decides itself with what to use instead. Secrets are in no repr.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.kafka.binding import create_ssl_context

REQUEST_TIMEOUT_MS = 12_000
"""How long a client waits for the answer to one request, unless told otherwise."""

CLIENT_OPTIONS: dict[str, type] = {
    "bootstrap_servers": str,
    "client_id": str,
    "metadata_max_age_ms": int,
    "request_timeout_ms": int,
    "retry_backoff_ms": int,
    "connections_max_idle_ms": int,
    "security_protocol": str,
    "ssl_context": object,
    "sasl_mechanism": str,
    "sasl_plain_username": str,
    "sasl_plain_password": str,
    "sasl_kerberos_service_name": str,
    "sasl_kerberos_domain_name": str,
    "sasl_oauth_token_provider": object,
}
"""What every client takes, under aiokafka's keywords."""

TLS_OPTIONS: dict[str, type] = {
    "ssl_ca_location": str,
    "ssl_certificate_location": str,
    "ssl_key_location": str,
    "ssl_key_password": str,
    "ssl_endpoint_identification_algorithm": str,
}
"""PEM files that the TLS context is made of; names as in librdkafka and Kafka."""

SOURCE_OPTIONS: dict[str, type] = {
    "group_id": str,
    "client_id_prefix": str,
    "fetch_min_bytes": int,
    "fetch_max_wait_ms": int,
    "fetch_max_bytes": int,
    "max_partition_fetch_bytes": int,
    "check_crcs": bool,
    "isolation_level": str,
    "default_api_timeout_ms": int,
    "partition_discovery_interval_ms": int,
    "commit_offsets_on_checkpoint": bool,
}

SINK_OPTIONS: dict[str, type] = {
    "client_id_prefix": str,
    "acks": str,
    "enable_idempotence": bool,
    "batch_size": int,
    "buffer_memory": int,
    "compression_type": str,
    "linger_ms": int,
    "max_request_size": int,
    "max_block_ms": int,
    "delivery_timeout_ms": int,
}

ALIASES = {
    "sasl_username": "sasl_plain_username",
    "sasl_password": "sasl_plain_password",
    "ssl_truststore_location": "ssl_ca_location",
    "ssl_keystore_location": "ssl_certificate_location",
    "max_batch_size": "batch_size",
    "sasl_kerberos_service": "sasl_kerberos_service_name",
}

_NO_GROUP = "the source assigns partitions itself and joins no consumer group; leave it out"
_DESERIALIZER = "use set_value_only_deserializer or set_deserializer"
_SERIALIZER = "use set_record_serializer"
_OWNED = {
    "enable_auto_commit": "offsets are committed with each checkpoint; use "
    "commit.offsets.on.checkpoint to switch that off",
    "auto_commit_interval_ms": "offsets are committed with each checkpoint",
    "auto_offset_reset": "use set_starting_offsets; KafkaOffsetsInitializer.committed_offsets "
    "and .offsets take a reset strategy",
    "group_protocol": _NO_GROUP,
    "group_instance_id": _NO_GROUP,
    "partition_assignment_strategy": _NO_GROUP,
    "session_timeout_ms": _NO_GROUP,
    "heartbeat_interval_ms": _NO_GROUP,
    "max_poll_interval_ms": _NO_GROUP,
    "rebalance_timeout_ms": _NO_GROUP,
    "max_poll_records": "batches form from what is there; leave it out",
    "allow_auto_create_topics": "the connector never creates topics; leave it out",
    "key_deserializer": _DESERIALIZER,
    "value_deserializer": _DESERIALIZER,
    "key_serializer": _SERIALIZER,
    "value_serializer": _SERIALIZER,
    "partitioner": "use set_partitioner of KafkaRecordSerializationSchema.builder()",
    "partitioner_class": "use set_partitioner of KafkaRecordSerializationSchema.builder()",
    "transactional_id": "use set_transactional_id_prefix",
    "max_in_flight_requests_per_connection": "one request at a time is in flight to a broker, "
    "which keeps the order; leave it out",
    "retries": "sending is retried until delivery.timeout.ms; use that",
    "sasl_jaas_config": "use sasl.plain.username and sasl.plain.password",
    "ssl_truststore_password": "only PEM files are read, which need no truststore password",
    "ssl_keystore_password": "only PEM files are read; a key's password is ssl.key.password",
    "register_consumer_metrics": "metrics are always there; leave it out",
}

_SECRET = re.compile(r"password|secret|token|jaas", re.IGNORECASE)
_TRUE = {"true": True, "false": False}


class KafkaOptionError(ValueError):
    """A setting of a Kafka source or sink is unknown, owned or has a bad value."""


@dataclass(frozen=True)
class Options:
    """Checked settings by aiokafka's keywords; only what was set is in `values`."""

    known: Mapping[str, type] = field(repr=False)
    values: Mapping[str, object] = field(default_factory=dict, repr=False)

    def with_option(self, name: str, value: object) -> Options:
        """These options and one more.

        Raises:
            KafkaOptionError: the name is unknown or owned, or the value does not fit.
        """
        keyword = _keyword(name)
        keyword = ALIASES.get(keyword, keyword)
        if keyword not in self.known:
            if keyword in _OWNED:
                raise KafkaOptionError(f"{name} cannot be set: {_OWNED[keyword]}")
            raise KafkaOptionError(f"unknown Kafka setting {name!r}{self._nearest(name)}")
        converted = _convert(name, value, self.known[keyword])
        if keyword == "bootstrap_servers" and converted:
            _check_addresses(name, str(converted))
        return Options(self.known, {**self.values, keyword: converted})

    def with_options(self, *settings: Mapping[str, object] | None) -> Options:
        """These options and those that are not None, later ones over earlier ones.

        Raises:
            KafkaOptionError: as `with_option` does.
        """
        options = self
        for each in settings:
            for name, value in (each or {}).items():
                if value is not None:
                    options = options.with_option(name, value)
        return options

    def text(self, keyword: str, default: str) -> str:
        """A string setting."""
        return str(self.values.get(keyword, default))

    def number(self, keyword: str, default: int) -> int:
        """An integer setting."""
        value = self.values.get(keyword, default)
        assert isinstance(value, int)
        return value

    def flag(self, keyword: str, default: bool) -> bool:
        """A boolean setting."""
        return bool(self.values.get(keyword, default))

    @property
    def bootstrap_servers(self) -> str:
        """The addresses as the user gave them."""
        return self.text("bootstrap_servers", "")

    def client_arguments(self, client_id: str) -> dict[str, object]:
        """What aiokafka's client is made with.

        Raises:
            KafkaOptionError: a TLS file cannot be read.
        """
        arguments = {name: self.values[name] for name in CLIENT_OPTIONS if name in self.values}
        # A request that gets no answer must not use up the time that asking again has.
        arguments.setdefault("request_timeout_ms", REQUEST_TIMEOUT_MS)
        arguments["bootstrap_servers"] = self.bootstrap_servers.replace(" ", "").split(",")
        arguments["client_id"] = self._client_id(client_id)
        protocol = self.text("security_protocol", "PLAINTEXT").upper()
        arguments["security_protocol"] = protocol
        if protocol in {"SSL", "SASL_SSL"} and "ssl_context" not in arguments:
            arguments["ssl_context"] = self._ssl_context()
        return arguments

    def _client_id(self, client_id: str) -> str:
        prefix = self.text("client_id_prefix", self.text("client_id", ""))
        return f"{prefix}-{client_id}" if prefix else client_id

    def _ssl_context(self) -> object:
        values = self.values
        try:
            context = create_ssl_context(
                cafile=values.get("ssl_ca_location"),
                certfile=values.get("ssl_certificate_location"),
                keyfile=values.get("ssl_key_location"),
                password=values.get("ssl_key_password"),
            )
        except OSError as error:
            raise KafkaOptionError(
                "the files of ssl.ca.location, ssl.certificate.location and ssl.key.location "
                f"could not be read as PEM: {error}"
            ) from error
        if self.text("ssl_endpoint_identification_algorithm", "https") == "":
            context.check_hostname = False
        return context

    def _nearest(self, name: str) -> str:
        dotted = [each.replace("_", ".") for each in self.known]
        near = difflib.get_close_matches(name.replace("_", "."), dotted, n=1, cutoff=0.6)
        return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(dotted)}"

    def __repr__(self) -> str:
        shown = {
            name: "***" if _SECRET.search(name) else value for name, value in self.values.items()
        }
        return f"Options({shown})"


def source_options() -> Options:
    """No option set yet, those of a source known."""
    return Options({**CLIENT_OPTIONS, **TLS_OPTIONS, **SOURCE_OPTIONS})


def sink_options() -> Options:
    """No option set yet, those of a sink known."""
    return Options({**CLIENT_OPTIONS, **TLS_OPTIONS, **SINK_OPTIONS})


def _keyword(name: str) -> str:
    return name.strip().replace(".", "_").replace("-", "_")


def _check_addresses(name: str, addresses: str) -> None:
    for address in map(str.strip, addresses.split(",")):
        host, colon, port = address.rpartition(":")
        if address and (not colon or address.endswith("]")):
            # aiokafka would try 9092; Kafka's own client refuses it, as most likely forgotten.
            raise KafkaOptionError(
                f"{name}: {address!r} lacks its port; write it such as '{address}:9092'"
            )
        port_fits = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
        if "/" in address or not (host and port_fits):
            raise KafkaOptionError(
                f"{name} takes addresses such as 'host:9092', separated by commas, not {address!r}"
            )


def _convert(name: str, value: object, kind: type) -> object:
    shown = "***" if _SECRET.search(name) else repr(value)
    if kind is object:
        return value
    if kind is str:
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        if isinstance(value, (str, int)):
            return str(value)
    elif kind is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _TRUE:
            return _TRUE[value.lower()]
    elif not isinstance(value, bool):
        if isinstance(value, str) and re.fullmatch(r"-?\d+", value.strip()):
            return int(value)
        if isinstance(value, int):
            return value
    raise KafkaOptionError(f"{name} takes {_ARTICLES[kind]}, not {shown}")


_ARTICLES = {str: "a string", int: "an integer", bool: "true or false"}
