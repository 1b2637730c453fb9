"""The word on tests that need the real Kafka and were not run: loud, and fatal if required."""

import pytest

_not_run: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-kafka",
        action="store_true",
        help="fail the run if a test that needs the real Kafka was not run",
    )


def pytest_configure(config: pytest.Config) -> None:
    not_run = config.stash[_not_run] = []
    config.pluginmanager.register(_Reports(not_run), "kafka tests not run")


class _Reports:
    """Sees the reports of all tests, also of those that ran in other processes."""

    def __init__(self, not_run: list[str]) -> None:
        self._not_run = not_run

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail") and "kafka" in report.keywords:
            self._not_run.append(report.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    not_run = terminalreporter.config.stash[_not_run]
    if not_run:
        terminalreporter.section("KAFKA TESTS NOT RUN", sep="!", red=True, bold=True)
        terminalreporter.line(
            f"Not run for want of the real Kafka: {len(not_run)}. Install Java 17 and Maven, or set"
            " KAFKA_BOOTSTRAP_SERVERS to a broker."
        )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    required = session.config.getoption("--require-kafka")
    if required and session.config.stash[_not_run] and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
