"""A real Apache Kafka on this machine, for development and tests.

``python -m connectors.kafka.local start|stop|status`` is the command line;
:class:`LocalBroker` is the same for programs.  It needs Java 17 or newer, and
Maven once, to fetch Kafka's jars.  It is a tool beside the jobs: no job needs it.
"""

from connectors.kafka.local.broker import LocalBroker
from connectors.kafka.local.failures import ExitCode, LocalBrokerError

__all__ = ["ExitCode", "LocalBroker", "LocalBrokerError"]
