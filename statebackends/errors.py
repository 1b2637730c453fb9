"""What can go wrong with state, as exceptions that name the state and the remedy."""


class StateError(Exception):
    """State was declared, used or restored in a way that cannot be right."""


class UnstableKeyError(StateError):
    """A key has no stable form, so it cannot say which subtask and entry it belongs to."""


class CorruptCheckpointError(StateError):
    """A checkpoint's bytes are not those that were written."""


class CheckpointStorageError(StateError):
    """A file of a checkpoint could not be written or removed; says which and why."""
