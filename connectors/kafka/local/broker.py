"""One local Kafka broker: its life from start to stop."""

import base64
import hashlib
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from connectors.kafka.local import artifacts, configuration, process
from connectors.kafka.local.configuration import Ports
from connectors.kafka.local.failures import ExitCode, LocalBrokerError
from connectors.kafka.local.lock import exclusive
from connectors.kafka.local.process import BrokerProcess
from connectors.kafka.local.waiting import wait_until

START_SECONDS = 60.0
STOP_SECONDS = 15.0
_FORMAT_SECONDS = 60.0

_READY_LINE = b"Kafka Server started"
_TAIL_LINES = 20
_SERVER_OPTIONS = (
    "-Xms128m",
    "-Xmx512m",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)
_FORMAT_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def _silent(_line: str) -> None:
    """Take progress lines that nobody wants to see."""


class LocalBroker:
    """Apache Kafka as one KRaft node on loopback, with its data in one folder.

    A context manager: starts on entry, stops on exit.  Brokers with different
    folders are independent and share the jars in ``home`` (default: the cache
    folder).  ``port`` None means: the port that the folder had before, else a free
    one.  ``properties`` are added to server.properties at each start.  Unless
    ``outlives_caller``, the broker is killed when this Python process ends.  Seconds
    bound the waits: ``start_seconds`` from launch to ready, ``stop_seconds`` from
    SIGTERM to SIGKILL.  ``report`` is called with lines of progress.

    Methods raise :class:`LocalBrokerError`, whose exit code names the kind of failure.
    """

    def __init__(
        self,
        data: Path,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        home: Path | None = None,
        outlives_caller: bool = False,
        start_seconds: float = START_SECONDS,
        stop_seconds: float = STOP_SECONDS,
        report: Callable[[str], None] = _silent,
    ) -> None:
        self._data = data.expanduser().resolve()
        self._records = self._data / "records"
        self._server_properties = self._data / "server.properties"
        self._pid_file = self._data / "pid"
        self._log = self._data / "server.log"
        self._output = self._data / "output.log"
        self._home = home if home is not None else artifacts.cache_folder()
        self._properties = dict(properties or {})
        self._outlives_caller = outlives_caller
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._report = report
        self._process: BrokerProcess | None = None
        self._ports = self._choose_ports(port)

    def _choose_ports(self, port: int | None) -> Ports:
        if port is not None:
            return Ports(port, port + 1)
        recorded = configuration.recorded_ports(self._server_properties)
        return recorded if recorded is not None else configuration.free_ports()

    @property
    def bootstrap(self) -> str:
        """The address for clients, also while the broker is down."""
        return self._ports.bootstrap

    @property
    def log(self) -> Path:
        """The file to which the broker logs."""
        return self._log

    @property
    def pid(self) -> int | None:
        """The process id of the running broker; None where it does not run."""
        running = self._find()
        return None if running is None else running.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, *, fresh: bool = False) -> str:
        """Start the broker unless it runs, wait until it is ready, return its address.

        ``fresh`` deletes the records first, and is refused (STILL_RUNNING) while the
        broker runs.  Of two starts at once on one folder the second waits for the
        first.  A start that fails leaves no process behind.
        """
        # The one before may have to fetch the jars first.
        seconds = artifacts.FETCH_SECONDS + _FORMAT_SECONDS + self._start_seconds
        waits = f"waiting for another start on {self._data}"
        with exclusive(self._data / "start.lock", seconds, lambda: self._report(waits)):
            running = self._find()
            if running is None:
                self._start(fresh)
            elif fresh:
                raise LocalBrokerError(
                    ExitCode.STILL_RUNNING,
                    f"the broker of {self._data} runs (pid {running.pid}): "
                    "stop it before starting afresh",
                )
            else:
                self._join(running)
        return self.bootstrap

    def _join(self, running: BrokerProcess) -> None:
        """Take over the address of a broker that runs already."""
        recorded = configuration.recorded_ports(self._server_properties)
        if recorded is not None:
            self._ports = recorded
        self._report(f"already running (pid {running.pid}, data in {self._data})")
        if self._properties:
            self._report("the given properties take effect at the next start")
        # Whoever launched it may have been killed before it was ready.
        self._wait_ready(running, lambda: configuration.is_listening(self._ports.client))

    def _start(self, fresh: bool) -> None:
        java = artifacts.find_java()
        for port in self._ports:
            if not configuration.is_free(port):
                role = "clients" if port == self._ports.client else "the controller"
                raise LocalBrokerError(
                    ExitCode.PORT_TAKEN,
                    f"port {port} (for {role}) is taken by another program: "
                    "end that program or choose another port",
                )
        jars = artifacts.fetch_jars(self._home, self._report)
        content = configuration.server_properties(self._ports, self._records, self._properties)
        if fresh:
            shutil.rmtree(self._records, ignore_errors=True)
        self._server_properties.write_text(content, encoding="ascii")
        (self._data / "log4j2.xml").write_text(configuration.LOGGING, encoding="utf-8")
        # The line that says it is ready must be of this start.
        self._log.unlink(missing_ok=True)
        self._format(java, jars)
        self._launch(java, jars)

    def _java(self, java: str, jars: Path, options: tuple[str, ...]) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._data / 'log4j2.xml'}"
        return [java, *options, logging, f"-Dbroker.log={self._log}", "-cp", f"{jars}/*"]

    def _format(self, java: str, jars: Path) -> None:
        if (self._records / "meta.properties").exists():
            return
        # The cluster needs an id of its own: 16 bytes in base 64, here those of its place.
        # A leading '-' would look like an option.
        place = hashlib.sha256(bytes(self._data)).digest()[:16]
        cluster = base64.urlsafe_b64encode(place).decode().rstrip("=").replace("-", "A")
        command = self._java(java, jars, _FORMAT_OPTIONS)
        command += ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        command += ["-t", cluster, "-c", str(self._server_properties)]
        try:
            answer = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_FORMAT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LocalBrokerError(
                ExitCode.FORMAT_FAILED,
                f"formatting {self._records} took longer than {_FORMAT_SECONDS:.0f} s: start again",
            ) from None
        if answer.returncode != 0:
            raise LocalBrokerError(
                ExitCode.FORMAT_FAILED,
                f"formatting {self._records} failed: check the folder and the given "
                f"properties; Kafka said:\n{_tail(answer.stdout)}",
            )

    def _launch(self, java: str, jars: Path) -> None:
        self._report(f"starting Apache Kafka {artifacts.KAFKA_VERSION} (data in {self._data}) ...")
        command = self._java(java, jars, _SERVER_OPTIONS)
        command += ["kafka.Kafka", str(self._server_properties)]
        with self._output.open("wb") as output:
            launched = process.spawn(command, self._server_properties, output)
        try:
            self._pid_file.write_text(str(launched.pid), encoding="ascii")
            if not self._outlives_caller:
                launched.guard()
            self._wait_ready(launched, self._says_ready)
        except BaseException:
            launched.kill()
            self._pid_file.unlink(missing_ok=True)
            raise
        self._process = launched
        self._report(f"running (pid {launched.pid})")

    def _says_ready(self) -> bool:
        try:
            said = _READY_LINE in self._log.read_bytes()
        except FileNotFoundError:
            return False
        return said and configuration.is_listening(self._ports.client)

    def _wait_ready(self, running: BrokerProcess, ready: Callable[[], bool]) -> None:
        in_time = wait_until(lambda: ready() or not running.alive(), self._start_seconds)
        if not running.alive():
            raise LocalBrokerError(
                ExitCode.DIED_WHILE_STARTING,
                f"the broker ended while starting; the last lines of {self._log} and "
                f"{self._output}:\n{self._last_words()}",
            )
        if not in_time:
            raise LocalBrokerError(
                ExitCode.NOT_READY_IN_TIME,
                f"the broker was not ready within {self._start_seconds:g} s; the last lines of "
                f"{self._log} and {self._output}:\n{self._last_words()}",
            )

    def _last_words(self) -> str:
        files = [file for file in (self._log, self._output) if file.exists()]
        return "\n".join(words for file in files if (words := _tail(file.read_bytes())))

    def _find(self) -> BrokerProcess | None:
        if self._process is not None and self._process.alive():
            return self._process
        return process.find(self._pid_file, self._server_properties)

    def stop(self) -> bool:
        """Stop the broker cleanly, after ``stop_seconds`` by force; return whether it ran."""
        return self._end(lambda running: running.end(self._stop_seconds))

    def kill(self) -> bool:
        """End the broker as a crash would, by SIGKILL; return whether it ran."""
        return self._end(lambda running: running.kill())

    def _end(self, end: Callable[[BrokerProcess], bool]) -> bool:
        running = self._find()
        if running is not None and not end(running):
            raise LocalBrokerError(
                ExitCode.STILL_RUNNING,
                f"the broker (pid {running.pid}) does not end even by SIGKILL: look at it with ps",
            )
        if self._process is not None:
            # The broker may have ended by itself, and its guard still stand.
            self._process.unguard()
            self._process = None
        self._pid_file.unlink(missing_ok=True)
        return running is not None

    def restart(self) -> str:
        """Stop the broker if it runs, start it on the same data and port, return its address."""
        self.stop()
        return self.start()

    def pause(self) -> None:
        """Freeze the broker: its connections stay open and nothing answers.

        Raises :class:`LocalBrokerError` (NOT_RUNNING) where it does not run, and
        (STILL_RUNNING) where it does not come to a halt.
        """
        running = self._running()
        if not running.pause():
            raise LocalBrokerError(
                ExitCode.STILL_RUNNING,
                f"the broker (pid {running.pid}) does not halt by SIGSTOP: look at it with ps",
            )

    def resume(self) -> None:
        """Let a paused broker go on.

        Raises :class:`LocalBrokerError` (NOT_RUNNING) where it does not run.
        """
        self._running().signal(signal.SIGCONT)

    def _running(self) -> BrokerProcess:
        running = self._find()
        if running is None:
            raise LocalBrokerError(
                ExitCode.NOT_RUNNING, f"the broker of {self._data} does not run: start it first"
            )
        return running


def _tail(output: bytes) -> str:
    return "\n".join(output.decode(errors="replace").splitlines()[-_TAIL_LINES:])
