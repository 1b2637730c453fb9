"""Programs that stand in for Java and Maven, so that each failure can be had at once.

The stand-in for Java answers ``-version``, formats, and serves like a broker, as
seconds-long starts of the real one would; what goes wrong is told to it by a mode.
"""

import sys
from pathlib import Path

_JAVA = """\
#!{python}
import pathlib, signal, socket, sys
mode = {mode!r}
arguments = sys.argv[1:]
if "-version" in arguments:
    sys.exit('openjdk version "{version}" 2026-01-01')
if "kafka.tools.StorageTool" in arguments:
    sys.exit("no format today" if mode == "no format" else 0)
if mode == "dies":
    sys.exit("the disk is on fire")
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
server = socket.create_server(("127.0.0.1", {port}))
if mode != "never ready":
    log = next(a.partition("=")[2] for a in arguments if a.startswith("-Dbroker.log="))
    pathlib.Path(log).write_text("Kafka Server started\\n")
while True:
    server.accept()[0].close()
"""

_MAVEN_FAILS = """\
#!/bin/sh
echo "Could not resolve host"
exit 1
"""

_MAVEN_FETCHES = """\
#!/bin/sh
for argument; do
  case $argument in -DoutputDirectory=*) folder=${{argument#*=}};; esac
done
mkdir "$folder" && touch "$folder/{jar}" && echo fetched >>"{count}"
"""


def install_java(folder: Path, port: int, *, version: str = "17.0.1", mode: str = "") -> None:
    """Put a ``java`` into ``folder`` that serves on ``port``."""
    text = _JAVA.format(python=sys.executable, mode=mode, version=version, port=port)
    _install(folder / "java", text)


def install_failing_maven(folder: Path) -> None:
    """Put an ``mvn`` into ``folder`` that finds no network."""
    _install(folder / "mvn", _MAVEN_FAILS)


def install_maven(folder: Path, jar: str, count: Path) -> None:
    """Put an ``mvn`` into ``folder`` that makes an empty ``jar`` and adds a line to ``count``."""
    _install(folder / "mvn", _MAVEN_FETCHES.format(jar=jar, count=count))


def _install(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
