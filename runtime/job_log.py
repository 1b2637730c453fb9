"""Where log records of a job go, and in which form."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")
NOISY_LOGGERS = ("aiokafka", "asyncio")
"""Libraries whose own information is of no use to a job's author."""

MASK = "***"
_SECRET = re.compile(
    r"""((?:password|passwd|secret|token|credential|jaas[._]config)["']?\s*[=:]\s*)"""
    r"""("[^"]*"|'[^']*'|[^\s,;)}\]]+)""",
    re.IGNORECASE,
)


def mask_secrets(text: str) -> str:
    """`text` with the values of what looks like passwords and tokens made unreadable."""
    return _SECRET.sub(rf"\g<1>{MASK}", text)


class LineFormatter(logging.Formatter):
    """Time, level and message for a person; secrets are masked."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """One record, with its traceback if it has one."""
        return mask_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line for a machine; secrets are masked."""

    def format(self, record: logging.LogRecord) -> str:
        """Time (UTC), level, logger, message and, where there is one, the traceback."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask_secrets(record.getMessage()),
        }
        if record.exc_info:
            entry["exception"] = mask_secrets(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class _StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Writes to what standard error is at that moment: the live line puts itself around it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # an attribute of the class above
        return sys.stderr


def configure_logging(level: str = "info", *, as_json: bool = False) -> None:
    """Sends log records of `level` and above to standard error, in place of earlier handlers."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
    handler = _StandardErrorHandler()
    handler.setFormatter(JsonFormatter() if as_json else LineFormatter())
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel("DEBUG" if level == "debug" else "WARNING")


def configure_unless_done() -> None:
    """As `configure_logging`, unless the program has already said where records go."""
    if not logging.getLogger().handlers:
        configure_logging()
