"""Settings of the clients: names, values, refusals and secrets."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from connectors.kafka.options import (
    REQUEST_TIMEOUT_MS,
    KafkaOptionError,
    sink_options,
    source_options,
)


@pytest.mark.parametrize(
    ("name", "value", "keyword", "read"),
    [
        ("fetch.max.wait.ms", "100", "fetch_max_wait_ms", 100),
        ("fetch_max_wait_ms", 100, "fetch_max_wait_ms", 100),
        ("check.crcs", "false", "check_crcs", False),
        ("group.id", "g", "group_id", "g"),
        ("sasl.username", "u", "sasl_plain_username", "u"),
        ("bootstrap.servers", ["a:1", "b:2"], "bootstrap_servers", "a:1,b:2"),
    ],
)
def test_dotted_names_and_keywords_are_one_setting(
    name: str, value: object, keyword: str, read: object
) -> None:
    """Strings are converted to what the client takes."""
    assert source_options().with_option(name, value).values == {keyword: read}


@pytest.mark.parametrize("addresses", ["broker:9092", "a:1, b:2", "[::1]:9092", "10.0.0.1:65535"])
def test_addresses_have_a_host_and_a_port(addresses: str) -> None:
    """Names, numbers, several of them."""
    assert source_options().with_option("bootstrap.servers", addresses).bootstrap_servers


@pytest.mark.parametrize("bad", ["a:b", "a:", ":9092", "a:0", "a:65536", "http://a:9092", "a:1,"])
def test_what_is_no_address_is_refused_before_anything_is_asked(bad: str) -> None:
    """It would otherwise be looked for until the time is up."""
    with pytest.raises(KafkaOptionError, match="takes addresses such as 'host:9092'"):
        source_options().with_option("bootstrap.servers", bad)


@pytest.mark.parametrize("bad", ["broker", "127.0.0.1", "[::1]", "a:1, b"])
def test_an_address_without_port_is_refused_as_by_kafka(bad: str) -> None:
    """The client would try another one than was meant until the time is up."""
    with pytest.raises(KafkaOptionError, match=r"lacks its port; write it such as '.*:9092'"):
        source_options().with_option("bootstrap.servers", bad)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    """Sources and sinks know different ones."""
    with pytest.raises(KafkaOptionError, match=r"did you mean 'fetch.min.bytes'"):
        source_options().with_option("fetch.min.byte", 1)
    with pytest.raises(KafkaOptionError, match=r"unknown Kafka setting 'linger.ms'"):
        source_options().with_option("linger.ms", 1)
    assert sink_options().with_option("linger.ms", 1).number("linger_ms", 0) == 1


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("enable.auto.commit", "commit.offsets.on.checkpoint"),
        ("auto.offset.reset", "set_starting_offsets"),
        ("group.protocol", "joins no consumer group"),
        ("value_deserializer", "set_value_only_deserializer"),
        ("transactional.id", "set_transactional_id_prefix"),
    ],
)
def test_what_the_connector_decides_is_refused_naming_its_own(name: str, remedy: str) -> None:
    """A setting that would be overridden must not look as if it counted."""
    with pytest.raises(KafkaOptionError, match=remedy):
        source_options().with_option(name, "x")


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("fetch.min.bytes", "many", "an integer"),
        ("check.crcs", "yes", "true or false"),
        ("group.id", 1.5, "a string"),
        ("fetch.min.bytes", True, "an integer"),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: object, wanted: str) -> None:
    """The error says what the setting takes."""
    with pytest.raises(KafkaOptionError, match=f"{name} takes {wanted}, not {value!r}"):
        source_options().with_option(name, value)


def test_secrets_are_not_shown() -> None:
    """Neither in a repr nor in a refusal."""
    options = source_options().with_option("sasl.password", "hunter2")
    assert "hunter2" not in repr(options)
    assert "sasl_plain_password" in repr(options)
    with pytest.raises(KafkaOptionError) as refusal:
        source_options().with_option("ssl.key.password", 1.25)
    assert "1.25" not in str(refusal.value)


def test_the_client_is_made_with_checked_arguments() -> None:
    """Only what it knows, with a client id that begins with the prefix."""
    options = source_options().with_option("bootstrap.servers", "a:1, b:2")
    options = options.with_option("client.id.prefix", "clicks").with_option("group.id", "g")
    assert options.client_arguments("source-0") == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "clicks-source-0",
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "security_protocol": "PLAINTEXT",
    }


def test_tls_needs_no_files_and_refuses_missing_ones(tmp_path: Path) -> None:
    """The system's authorities are the default; host names are checked unless told otherwise."""
    options = source_options().with_option("security.protocol", "SSL")
    context = options.client_arguments("c")["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    lax = options.with_option("ssl.endpoint.identification.algorithm", "")
    assert not lax.client_arguments("c")["ssl_context"].check_hostname
    missing = options.with_option("ssl.ca.location", str(tmp_path / "ca.pem"))
    with pytest.raises(KafkaOptionError, match=r"ssl.ca.location"):
        missing.client_arguments("c")
