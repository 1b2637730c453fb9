"""The errors that users of the runtime meet."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """A setting, an argument or a job graph that cannot work; names setting, value and remedy."""


class JobExecutionError(Exception):
    """A job failed; the message says where and on what, `__cause__` is the first failure."""


class RecoveryError(Exception):
    """What a start should restore from is not usable; names the checkpoint and the remedy."""


class OperatorFailure(Exception):
    """A failure inside one operator, with the coordinates that lead there.

    Raised inside the runtime around the user's exception (`__cause__`, untouched) and turned
    into a `JobExecutionError` where the job ends.
    """

    def __init__(
        self,
        *,
        operator: str,
        uid: str,
        subtask_index: int,
        parallelism: int,
        doing: str = "",
        key: str = "",
        record: str = "",
        origin: str = "",
    ) -> None:
        self.operator = operator
        where = f"operator {operator!r} (uid {uid}, subtask {subtask_index + 1}/{parallelism})"
        parts = [where]
        if doing:
            parts.append(doing)
        if key:
            parts.append(f"on key {key}")
        if origin:
            parts.append(f"record from {origin}")
        if record:
            parts.append(f"record {record}")
        super().__init__(", ".join(parts))

    def describe(self) -> str:
        """The coordinates and the cause in one sentence."""
        cause = self.__cause__
        return f"{self}: {type(cause).__name__}({cause})" if cause is not None else str(self)
