"""The files that configure a local broker: server.properties and log4j2.xml."""

import itertools
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from connectors.kafka.local.failures import ExitCode, LocalBrokerError

HOST = "127.0.0.1"
DEFAULT_PORT = 19092
DATA_KEY = "log.dirs"

# Below the range from which Linux (32768) and macOS (49152) take the ports of
# outgoing connections: a client that reconnects to a port of that range while the
# broker is down can end up connected to itself and so keep the broker from its port.
_FREE_PORTS = range(20_000, 32_000, 2)

_LAST_TIMESTAMP = 2**63 - 1


class Ports(NamedTuple):
    """The two ports of a broker: for clients, and for its own controller."""

    client: int
    controller: int

    @property
    def bootstrap(self) -> str:
        """The address that clients are given."""
        return f"{HOST}:{self.client}"


def is_free(port: int) -> bool:
    """Tell whether a server could listen on ``port`` now."""
    with socket.socket() as probe:
        # As the broker does: connections of a former server that linger are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def is_listening(port: int) -> bool:
    """Tell whether some server accepts connections on ``port``."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


_pairs = itertools.count()


def free_ports() -> Ports:
    """Choose two neighbouring ports on which nothing listens.

    No pair is given twice by one process, whose brokers may be made before any of
    them starts; processes begin at different pairs.
    """
    for _ in _FREE_PORTS:
        port = _FREE_PORTS[(os.getpid() * 37 + next(_pairs)) % len(_FREE_PORTS)]
        if is_free(port) and is_free(port + 1):
            return Ports(port, port + 1)
    raise LocalBrokerError(
        ExitCode.PORT_TAKEN,
        f"no two neighbouring ports are free between {_FREE_PORTS.start} and {_FREE_PORTS.stop}",
    )


def _owned(ports: Ports, records: Path) -> dict[str, str]:
    """Return the properties that make the broker ours; nobody may override them."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.client}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        DATA_KEY: str(records),
    }


_DEFAULTS = {
    # One node can hold one replica only.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Fewer partitions than Kafka's 50: the first group and the first transaction come sooner.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # A new group starts at once instead of after 3 s; tests may use short sessions.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # After a kill the controller refuses the broker until the dead one's session
    # is over; Kafka's 9 s would be added to each hard restart.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    # The only voter need not wait for the votes of others before it leads again.
    "controller.quorum.fetch.timeout.ms": "200",
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "100",
    # Event time is whatever the records say: retention judges by the timestamps of
    # records, so any limit deletes old ones, and by default Kafka refuses timestamps
    # more than an hour ahead.
    "log.retention.ms": "-1",
    "log.message.timestamp.after.max.ms": str(_LAST_TIMESTAMP),
    # Small footprint: this broker shares a developer's machine.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    "log.segment.bytes": str(128 * 1024 * 1024),
}

# The line by which the broker says it is ready comes from KafkaRaftServer at INFO.
LOGGING = """\
<Configuration status="OFF">
  <Appenders>
    <RollingFile name="File" fileName="${sys:broker.log}" filePattern="${sys:broker.log}.%i">
      <PatternLayout pattern="%d %p %c{1}: %m%n"/>
      <SizeBasedTriggeringPolicy size="10MB"/>
      <DefaultRolloverStrategy max="2"/>
    </RollingFile>
  </Appenders>
  <Loggers>
    <Logger name="kafka.server.KafkaRaftServer" level="info"/>
    <Logger name="org.apache.kafka.clients" level="error"/>
    <Root level="warn"><AppenderRef ref="File"/></Root>
  </Loggers>
</Configuration>
"""


def server_properties(ports: Ports, records: Path, overrides: Mapping[str, str]) -> str:
    """Render server.properties for a broker whose records live in ``records``.

    Raises :class:`LocalBrokerError` (BAD_USAGE) for an override of a property that the
    broker's place and ports are made of, and for a folder that Kafka cannot name.
    """
    owned = _owned(ports, records)
    refused = sorted(owned.keys() & overrides.keys())
    if refused:
        raise LocalBrokerError(
            ExitCode.BAD_USAGE,
            f"the property {refused[0]!r} cannot be set: it follows from the port "
            "and the data folder",
        )
    if "," in str(records):
        raise LocalBrokerError(
            ExitCode.BAD_USAGE,
            f"the data folder {records} has a comma in its name, at which Kafka would split it",
        )
    properties = {**_DEFAULTS, **owned, **overrides}
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(text: str) -> str:
    r"""Write ``text`` as java.util.Properties reads it: ASCII, the rest as UTF-16 ``\uXXXX``."""
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return "".join(
        chr(code) if 0x20 < code < 0x7F and chr(code) not in "\\=#!" else f"\\u{code:04x}"
        for code in codes
    )


def recorded_ports(properties: Path) -> Ports | None:
    """Read the ports back from a server.properties file; None where there is none."""
    try:
        lines = properties.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key == "listeners":
            client, controller = (int(part.rpartition(":")[2]) for part in value.split(","))
            return Ports(client, controller)
    return None
