"""The local broker's command line: what it prints, and one exit code for each failure."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connectors.kafka.local import ExitCode, LocalBroker, LocalBrokerError
from connectors.kafka.local.artifacts import KAFKA_VERSION, SCALA_VERSION, jar_folder
from connectors.kafka.local.configuration import (
    free_ports,
    is_free,
    recorded_ports,
    server_properties,
)
from tests.connectors.kafka import stand_in_java

ROOT = Path(__file__).parents[3]


@dataclass
class CommandLine:
    """The command line on a machine of its own: PATH, HOME and cache are folders of the test."""

    folder: Path
    port: int

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def home(self) -> Path:
        return self.folder / "cache" / "riverrun" / "kafka"

    def popen(self, verb: str, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "connectors.kafka.local", verb]
        return subprocess.Popen(
            [*command, "--port", str(self.port), *options],
            cwd=ROOT,
            env={"PATH": str(self.programs), "XDG_CACHE_HOME": str(self.folder / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, verb: str, *options: str) -> tuple[int, str, str]:
        running = self.popen(verb, *options)
        output, messages = running.communicate(timeout=50)
        return running.returncode, output, messages

    def install_jars(self) -> None:
        jar_folder(self.home).mkdir(parents=True)


@pytest.fixture
def command_line(tmp_path: Path) -> Iterator[CommandLine]:
    """A command line with a working stand-in for Java; its broker is ended after the test."""
    port = free_ports().client
    made = CommandLine(tmp_path, port)
    stand_in_java.install_java(made.programs, port)
    yield made
    LocalBroker(made.home / f"data-{port}").kill()


def test_start_prints_the_address_alone(command_line: CommandLine) -> None:
    """Standard output of a start is the bootstrap address, for scripts to read."""
    command_line.install_jars()
    code, output, _ = command_line.run("start")
    assert (code, output) == (0, f"127.0.0.1:{command_line.port}\n")


def test_start_of_a_running_broker_prints_its_address(command_line: CommandLine) -> None:
    """A second start changes nothing and answers the same."""
    command_line.install_jars()
    first = command_line.run("start")
    pid = LocalBroker(command_line.home / f"data-{command_line.port}").pid
    code, output, messages = command_line.run("start")
    assert (code, output) == first[:2]
    assert f"already running (pid {pid}" in messages


def test_two_starts_at_once_give_one_broker(command_line: CommandLine) -> None:
    """The second start waits for the first, and the jars are fetched once."""
    count = command_line.folder / "count"
    jar = f"kafka_{SCALA_VERSION}-{KAFKA_VERSION}.jar"
    stand_in_java.install_maven(command_line.programs, jar, count)
    os.symlink("/bin/mkdir", command_line.programs / "mkdir")
    os.symlink("/usr/bin/touch", command_line.programs / "touch")
    starts = [command_line.popen("start") for _ in range(2)]
    outputs = [start.communicate(timeout=50) for start in starts]
    assert [start.returncode for start in starts] == [0, 0]
    assert {output for output, _ in outputs} == {f"127.0.0.1:{command_line.port}\n"}
    assert sum("already running" in messages for _, messages in outputs) == 1
    assert count.read_text() == "fetched\n"


def test_status_tells_whether_it_runs(command_line: CommandLine) -> None:
    """Exit code 1 and no address before the start and after the stop, 0 between them."""
    command_line.install_jars()
    assert command_line.run("status")[:2] == (ExitCode.NOT_RUNNING, "")
    command_line.run("start")
    assert command_line.run("status")[:2] == (0, f"127.0.0.1:{command_line.port}\n")
    assert command_line.run("stop")[:2] == (0, "")
    assert command_line.run("status")[:2] == (ExitCode.NOT_RUNNING, "")


def test_stop_of_nothing_is_no_failure(command_line: CommandLine) -> None:
    """What shall not run and does not run is as asked."""
    code, _, messages = command_line.run("stop")
    assert (code, messages) == (0, "kafka: not running\n")


def test_fresh_is_refused_while_the_broker_runs(command_line: CommandLine) -> None:
    """Records of a running broker are not deleted from under it."""
    command_line.install_jars()
    command_line.run("start")
    code, output, messages = command_line.run("start", "--fresh")
    assert (code, output) == (ExitCode.STILL_RUNNING, "")
    assert "stop it before starting afresh" in messages


def test_a_machine_without_java_is_told_what_to_install(command_line: CommandLine) -> None:
    """The message names Java and how to get it."""
    (command_line.programs / "java").unlink()
    code, output, messages = command_line.run("start")
    assert (code, output) == (ExitCode.NO_JAVA, "")
    assert "Java is missing" in messages
    assert "install Java 17 or newer" in messages


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.2", 11)])
def test_an_old_java_is_named(command_line: CommandLine, version: str, major: int) -> None:
    """The message says which version was found and which is needed."""
    stand_in_java.install_java(command_line.programs, command_line.port, version=version)
    code, _, messages = command_line.run("start")
    assert code == ExitCode.NO_JAVA
    assert f"is version {major}, Kafka {KAFKA_VERSION} needs 17" in messages


def test_a_machine_without_maven_is_told_what_to_install(command_line: CommandLine) -> None:
    """The message names Maven, and why it is needed."""
    code, _, messages = command_line.run("start")
    assert code == ExitCode.NO_MAVEN
    assert "Maven is missing" in messages


def test_a_fetch_that_fails_shows_what_maven_said(command_line: CommandLine) -> None:
    """The message holds Maven's last lines, and no half-fetched jars stay."""
    stand_in_java.install_failing_maven(command_line.programs)
    code, _, messages = command_line.run("start")
    assert code == ExitCode.FETCH_FAILED
    assert "Could not resolve host" in messages
    assert [path.name for path in command_line.home.glob("fetch-*")] == []


@pytest.mark.parametrize("neighbour", [0, 1])
def test_a_taken_port_is_named(command_line: CommandLine, neighbour: int) -> None:
    """The message names the port, be it that for clients or the controller's."""
    taken = command_line.port + neighbour
    with socket.create_server(("127.0.0.1", taken)):
        code, _, messages = command_line.run("start")
    assert code == ExitCode.PORT_TAKEN
    assert f"port {taken} " in messages


@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [
        ("no format", ExitCode.FORMAT_FAILED, "no format today"),
        ("dies", ExitCode.DIED_WHILE_STARTING, "the disk is on fire"),
    ],
)
def test_a_start_that_fails_shows_the_last_words(
    command_line: CommandLine, mode: str, code: ExitCode, words: str
) -> None:
    """The message holds what the program said before it ended."""
    command_line.install_jars()
    stand_in_java.install_java(command_line.programs, command_line.port, mode=mode)
    found, output, messages = command_line.run("start")
    assert (found, output) == (code, "")
    assert words in messages


@pytest.mark.parametrize("option", ["log.dirs=/elsewhere", "listeners=PLAINTEXT://:1"])
def test_a_property_that_is_not_the_callers_is_refused(
    command_line: CommandLine, option: str
) -> None:
    """Ports and folder are set by their options only."""
    command_line.install_jars()
    code, _, messages = command_line.run("start", "--set", option)
    assert code == ExitCode.BAD_USAGE
    assert "cannot be set" in messages


@pytest.mark.parametrize("options", [("--set", "novalue"), ("--port", "70000"), ("--port", "x")])
def test_a_malformed_option_is_bad_usage(command_line: CommandLine, options: list[str]) -> None:
    """The value is shown, with what it should be."""
    code, _, messages = command_line.run("start", *options)
    assert code == ExitCode.BAD_USAGE
    assert f"'{options[1]}' is no" in messages


def _stand_in_broker(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mode: str, seconds: float
) -> LocalBroker:
    ports = free_ports()
    stand_in_java.install_java(folder / "bin", ports.client, mode=mode)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    jar_folder(folder).mkdir(parents=True)
    return LocalBroker(
        folder / "data",
        port=ports.client,
        home=folder,
        start_seconds=seconds,
        stop_seconds=0.1,
    )


def test_a_broker_that_is_not_ready_in_time_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that fails leaves no process and no open port behind."""
    broker = _stand_in_broker(tmp_path, monkeypatch, "never ready", 0.5)
    with pytest.raises(LocalBrokerError, match=r"not ready within 0\.5 s") as failure:
        broker.start()
    assert failure.value.exit_code == ExitCode.NOT_READY_IN_TIME
    assert broker.pid is None
    assert is_free(int(broker.bootstrap.rpartition(":")[2]))


def test_a_broker_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop ends within its bounds whatever the broker does."""
    broker = _stand_in_broker(tmp_path, monkeypatch, "deaf", 30)
    broker.start()
    assert broker.stop()
    assert broker.pid is None


def test_a_paused_broker_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen process is waked to take notice of the signal."""
    with _stand_in_broker(tmp_path, monkeypatch, "", 30) as broker:
        broker.pause()
        assert broker.pid is not None
        assert broker.stop()
        assert broker.pid is None


def test_a_broker_that_does_not_run_cannot_be_paused(tmp_path: Path) -> None:
    """Pausing nothing is an error of the caller."""
    with pytest.raises(LocalBrokerError, match="start it first"):
        LocalBroker(tmp_path).pause()


def test_a_process_id_given_away_anew_is_left_alone(tmp_path: Path) -> None:
    """A pid file that names a process of somebody else names no broker."""
    (tmp_path / "pid").write_text(str(os.getpid()))
    broker = LocalBroker(tmp_path)
    assert broker.pid is None
    assert not broker.kill()


def test_a_folder_keeps_its_ports(tmp_path: Path) -> None:
    """Ports that were free once are read back from the folder's server.properties."""
    ports = free_ports()
    content = server_properties(ports, tmp_path / "zwölf = 12" / "\N{GRINNING FACE}", {})
    (tmp_path / "server.properties").write_text(content, encoding="ascii")
    assert recorded_ports(tmp_path / "server.properties") == ports
    assert LocalBroker(tmp_path).bootstrap == ports.bootstrap


def test_brokers_made_one_after_the_other_have_different_ports(tmp_path: Path) -> None:
    """Neither has to be started for the other to keep off its ports."""
    addresses = {LocalBroker(tmp_path / name).bootstrap for name in "abc"}
    assert len(addresses) == 3
