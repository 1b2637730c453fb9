"""Options of the conformance runner, and the word on cases that it leaves out.

pytest tests/conformance [--cases DIR] [--state-backend heap] [--timers heap]
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BUILT = ("heap",)
"""Where keyed state and timers can live so far."""

left_out: pytest.StashKey[Counter[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption(
        "--cases",
        type=Path,
        default=Path(__file__).parent / "cases",
        metavar="DIR",
        help="the folder of the conformance cases",
    )
    for option, what in (("--state-backend", "keyed state lives"), ("--timers", "timers live")):
        group.addoption(
            option,
            choices=("heap", "rocksdb"),
            default="heap",
            help=f"where {what} in the conformance cases",
        )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[left_out] = Counter()
    config.addinivalue_line(
        "markers", "left_out(reason): a conformance case that this version is not to pass"
    )
    for option in ("--state-backend", "--timers"):
        chosen = config.getoption(option)
        if chosen not in BUILT:
            raise pytest.UsageError(
                f"{option} {chosen} is not built yet; there is {' and '.join(BUILT)}"
            )
    if not config.getoption("--cases").is_dir():
        raise pytest.UsageError(f"--cases: there is no folder {config.getoption('--cases')}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        marker = item.get_closest_marker("left_out")
        if marker is None:
            kept.append(item)
        else:
            dropped.append(item)
            config.stash[left_out][marker.args[0]] += 1
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that started this one, if one did."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = dict(session.config.stash[left_out])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each process that ran tests has collected, and left out, the same cases."""
    output = getattr(node, "workeroutput", None)
    if output is not None:
        node.config.stash[left_out] = Counter(output["left_out"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = terminalreporter.config.stash[left_out]
    if reasons:
        terminalreporter.section("conformance cases left out")
        for reason, count in sorted(reasons.items()):
            terminalreporter.line(f"{count:4} {reason}")
