"""What can go wrong around a local broker, each with its own exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of ``python -m connectors.kafka.local``; 0 means success."""

    NOT_RUNNING = 1
    BAD_USAGE = 2
    NO_JAVA = 3
    NO_MAVEN = 4
    FETCH_FAILED = 5
    FORMAT_FAILED = 6
    PORT_TAKEN = 7
    DIED_WHILE_STARTING = 8
    NOT_READY_IN_TIME = 9
    START_UNDER_WAY = 10
    STILL_RUNNING = 11


class LocalBrokerError(RuntimeError):
    """A local broker could not do what was asked; the message says why and what to do.

    ``exit_code`` is the code with which the command line ends.
    """

    def __init__(self, exit_code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code
