"""What a failure of an attempt means for the job: its sentence, its cause, and what may follow."""

from __future__ import annotations

from operators.errors import PermanentError
from runtime.errors import OperatorFailure, error_text
from statebackends.errors import CheckpointStorageError, CorruptCheckpointError, StateError


def describe_failure(error: BaseException) -> str:
    """How the job failed, as the end of a sentence that begins with the job."""
    if isinstance(error, OperatorFailure):
        return f"in {error.describe()}"
    if isinstance(error, StateError):
        return f"with its state: {error}"
    return f"with {type(error).__name__}: {error_text(error)}"


def is_permanent(error: BaseException) -> bool:
    """Whether the next start would fail in the same way for sure."""
    if isinstance(error, CheckpointStorageError | CorruptCheckpointError):
        return False
    return isinstance(error, PermanentError | StateError)


def user_cause(error: BaseException) -> BaseException:
    """The user's own exception where there is one."""
    if isinstance(error, OperatorFailure) and error.__cause__ is not None:
        return error.__cause__
    return error
