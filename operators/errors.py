"""Failures that operators and connectors tell the runtime apart by."""


class PermanentError(Exception):
    """A failure that no new start can cure: the job ends with it at once.

    Flink: `SuppressRestartsException`.
    """


class WrongResultError(PermanentError, TypeError):
    """User code gave back what the runtime cannot take, as it would after the next start."""


class WrongTimestampError(PermanentError, ValueError):
    """A record's timestamp is missing or beyond all bounds, as it would be after the next start."""


class UnreachableError(Exception):
    """A system outside of the job does not answer.

    A job that never ran is not started again for it: most likely its address is wrong.
    """
