"""Failures that operators and connectors tell the runtime apart by."""


class PermanentError(Exception):
    """A failure that no new start can cure: the job ends with it at once.

    Flink: `SuppressRestartsException`.
    """
