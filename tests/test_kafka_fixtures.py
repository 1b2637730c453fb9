"""Whoever needs a real Kafka that cannot be had is skipped with the reason, and fails in CI."""

from pathlib import Path

import pytest

from tests.connectors.kafka import stand_in_java


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite of its own with the fixtures, on a machine without Java."""
    pytester.makeconftest("pytest_plugins = ['tests.kafka_fixtures']")
    pytester.makeini(
        "[pytest]\nmarkers =\n    kafka\nasyncio_default_fixture_loop_scope = function\n"
    )
    for name in ("JAVA_HOME", "CI", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(pytester.path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    return pytester


def test_without_java_a_test_that_asks_for_kafka_is_skipped(suite: pytest.Pytester) -> None:
    """The reason names Java and how to get it."""
    suite.makepyfile("def test_planted(kafka):\n    assert False")
    result = suite.runpytest_inprocess("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*no real Kafka: Java is missing*install Java 17 or newer*"])


def test_without_java_ci_fails(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is a skip elsewhere is an error where CI is set."""
    monkeypatch.setenv("CI", "true")
    suite.makepyfile("def test_planted(create_topic):\n    assert True")
    result = suite.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no real Kafka, which CI must have: Java is missing*"])


def test_a_fetch_that_fails_counts_as_no_kafka(suite: pytest.Pytester) -> None:
    """Without a network the jars are tried once, not once for each test."""
    stand_in_java.install_java(Path(suite.path / "bin"), port=0)
    stand_in_java.install_failing_maven(Path(suite.path / "bin"))
    suite.makepyfile(
        "def test_first(kafka):\n    assert False\ndef test_second(kafka):\n    assert False"
    )
    result = suite.runpytest_inprocess("-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*Maven could not fetch Kafka*"])


def test_a_given_address_needs_no_java(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA_BOOTSTRAP_SERVERS is handed to the tests as it is."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka.example:9092")
    suite.makepyfile("def test_planted(kafka):\n    assert kafka == 'kafka.example:9092'")
    suite.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_test_that_kills_brokers_needs_java_all_the_same(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody's broker at a given address is killed."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka.example:9092")
    suite.makepyfile("def test_planted(local_broker):\n    assert False")
    suite.runpytest_inprocess().assert_outcomes(skipped=1)


def test_users_of_the_fixtures_are_marked(suite: pytest.Pytester) -> None:
    """Deselecting the marker leaves out each test that would start a broker."""
    suite.makepyfile(
        "def test_planted(kafka):\n    assert False\ndef test_other():\n    assert True"
    )
    result = suite.runpytest_inprocess("-m", "not kafka")
    result.assert_outcomes(passed=1, deselected=1)
