"""Log records: readable by a person or a machine, and without secrets."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from runtime.job_log import configure_logging, mask_secrets


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was again afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("aiokafka", "asyncio"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    "text",
    [
        "sasl_plain_password=hunter2",
        "{'ssl_password': 'hunter2', 'topic': 'clicks'}",
        'token: "hunter2"',
        "sasl.jaas.config=hunter2;",
        "client_secret = hunter2",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    """Whatever the way of writing them."""
    masked = mask_secrets(text)
    assert "hunter2" not in masked
    assert "***" in masked


def test_what_is_no_secret_stays() -> None:
    """Words that only look alike are left alone."""
    text = "job 'tokens': 3 operators, topic=passwords, key 'secret garden'"
    assert mask_secrets(text) == text


def test_json_logs_are_one_object_a_line(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the traceback of an exception inside."""
    configure_logging("info", as_json=True)
    try:
        raise KeyError("ts")
    except KeyError:
        root.exception("failed on %s", "clicks")
    entry = json.loads(capsys.readouterr().err)
    assert entry["message"] == "failed on clicks"
    assert entry["level"] == "error"
    assert "KeyError: 'ts'" in entry["exception"]


def test_records_below_the_level_are_not_written(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those at it are."""
    configure_logging("warning")
    root.info("unheard")
    root.warning("heard")
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["heard"]


def test_records_follow_standard_error(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream that is put around it later sees them."""
    configure_logging("info")
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    root.info("moved")
    assert "moved" in capsys.readouterr().out
