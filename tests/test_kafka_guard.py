"""A run that left the real Kafka out says so, and fails where Kafka is required."""

import pytest


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite of its own under the same guard."""
    pytester.makeconftest("pytest_plugins = ['tests.kafka_guard']")
    pytester.makeini(
        "[pytest]\nmarkers =\n    kafka\nasyncio_default_fixture_loop_scope = function\n"
    )
    return pytester


def plant(suite: pytest.Pytester, *, marker: str, body: str) -> None:
    """Give the suite one test."""
    suite.makepyfile(f"import pytest\n\n{marker}\ndef test_planted():\n    {body}\n")


@pytest.mark.parametrize("processes", [0, 1])
def test_a_kafka_test_not_run_is_said_loudly(suite: pytest.Pytester, processes: int) -> None:
    """Without the requirement the run passes, with a section of its own in the summary."""
    plant(suite, marker="@pytest.mark.kafka", body="pytest.skip('no Java')")
    result = suite.runpytest_inprocess("-n", str(processes))

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*KAFKA TESTS NOT RUN*", "Not run for want of the real Kafka: 1.*"]
    )


@pytest.mark.parametrize("processes", [0, 1])
def test_a_kafka_test_not_run_fails_the_run_that_requires_it(
    suite: pytest.Pytester, processes: int
) -> None:
    """CI does not pass on skipped tests."""
    plant(suite, marker="@pytest.mark.kafka", body="pytest.skip('no Java')")

    result = suite.runpytest_inprocess("--require-kafka", "-n", str(processes))
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_kafka_test_that_ran_satisfies_the_requirement(suite: pytest.Pytester) -> None:
    """The requirement is about running, nothing else."""
    plant(suite, marker="@pytest.mark.kafka", body="assert True")

    assert suite.runpytest_inprocess("--require-kafka").ret == pytest.ExitCode.OK


def test_another_skipped_test_is_nobodys_concern(suite: pytest.Pytester) -> None:
    """Only tests marked kafka are counted."""
    plant(suite, marker="@pytest.mark.skipif(True, reason='not here')", body="assert True")

    assert suite.runpytest_inprocess("--require-kafka").ret == pytest.ExitCode.OK
