"""What a failure of an attempt means for the job: its sentence, its cause, and what may follow."""

from __future__ import annotations

from operators.errors import PermanentError, UnreachableError
from runtime.errors import JobExecutionError, OperatorFailure, summary
from statebackends.errors import CheckpointStorageError, CorruptCheckpointError, StateError


def describe_failure(error: BaseException) -> str:
    """How the job failed, as the end of a sentence that begins with the job."""
    if isinstance(error, OperatorFailure):
        return f"in {error.describe()}"
    if isinstance(error, StateError):
        return f"with its state: {error}"
    return f"with {summary(error)}"


def job_failure(job_name: str, error: BaseException) -> JobExecutionError:
    """The end of the job: the user's exception is the cause, what else failed is noted."""
    failed = JobExecutionError(f"job {job_name!r} failed {describe_failure(error)}")
    failed.__cause__ = user_cause(error)
    if isinstance(error, OperatorFailure):
        # The cause is the user's exception, which does not have them.
        for note in getattr(error, "__notes__", ()):
            failed.add_note(note)
    return failed


def is_permanent(error: BaseException, *, ran: bool) -> bool:
    """Whether the next start would fail in the same way; `ran`: one got as far as to run."""
    if isinstance(error, CheckpointStorageError | CorruptCheckpointError):
        return False
    if isinstance(error, UnreachableError) and not ran:
        return True
    return isinstance(error, PermanentError | StateError)


def user_cause(error: BaseException) -> BaseException:
    """The user's own exception where there is one."""
    if isinstance(error, OperatorFailure) and error.__cause__ is not None:
        return error.__cause__
    return error
