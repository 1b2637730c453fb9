"""What the command line says and does: one verb on one broker that outlives it.

The bootstrap address is all that goes to stdout, so that a script can read it;
progress and errors go to stderr.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from connectors.kafka.local import artifacts
from connectors.kafka.local.broker import LocalBroker
from connectors.kafka.local.configuration import DEFAULT_PORT
from connectors.kafka.local.failures import ExitCode, LocalBrokerError

_LAST_PORT = 65534  # the controller takes the next one

_EXIT_CODES = "exit codes: 0 done; " + "; ".join(
    f"{code.value} {code.name.lower().replace('_', ' ')}" for code in ExitCode
)


def _report(line: str) -> None:
    print(f"kafka: {line}", file=sys.stderr, flush=True)


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else 0
    if not 0 < port <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give 1 to {_LAST_PORT}")
    return port


def _property(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no property: give key=value")
    return key.strip(), value.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m connectors.kafka.local",
        description=f"A local Apache Kafka {artifacts.KAFKA_VERSION} for development: "
        "one node on loopback.",
        epilog=_EXIT_CODES,
    )
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument(
        "--port",
        type=_port,
        help=f"for clients (default {DEFAULT_PORT}); the controller takes the next one",
    )
    place.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the broker's records and logs (default: one for each port, in "
        f"{artifacts.cache_folder()})",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    start = verbs.add_parser(
        "start", parents=[place], help="start it unless it runs; print the bootstrap address"
    )
    start.add_argument(
        "--set",
        dest="properties",
        action="append",
        default=[],
        type=_property,
        metavar="KEY=VALUE",
        help="a property of the broker (repeatable)",
    )
    start.add_argument("--fresh", action="store_true", help="delete its records first")
    verbs.add_parser("stop", parents=[place], help="stop it")
    verbs.add_parser("status", parents=[place], help="print the bootstrap address if it runs")
    return parser


def _broker(options: argparse.Namespace) -> LocalBroker:
    data: Path | None = options.data
    port: int | None = options.port
    if data is None:
        port = port or DEFAULT_PORT
        data = artifacts.cache_folder() / f"data-{port}"
    elif port is None and not (data / "server.properties").exists():
        port = DEFAULT_PORT
    return LocalBroker(
        data,
        port=port,
        properties=dict(getattr(options, "properties", ())),
        outlives_caller=True,
        report=_report,
    )


def _start(broker: LocalBroker, fresh: bool) -> int:
    print(broker.start(fresh=fresh), flush=True)
    return 0


def _stop(broker: LocalBroker) -> int:
    _report("stopped" if broker.stop() else "not running")
    return 0


def _status(broker: LocalBroker) -> int:
    pid = broker.pid
    if pid is None:
        _report("not running")
        return ExitCode.NOT_RUNNING
    _report(f"running (pid {pid})")
    print(broker.bootstrap, flush=True)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code (see :class:`ExitCode`)."""
    options = _parser().parse_args(arguments)
    try:
        broker = _broker(options)
        if options.verb == "start":
            return _start(broker, options.fresh)
        return _stop(broker) if options.verb == "stop" else _status(broker)
    except LocalBrokerError as failure:
        _report(str(failure))
        return failure.exit_code
    except KeyboardInterrupt:
        _report("interrupted")
        return 130
