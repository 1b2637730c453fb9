"""Java, Maven and Kafka's jars: what a local broker is made of."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from connectors.kafka.local.failures import ExitCode, LocalBrokerError
from connectors.kafka.local.lock import exclusive

KAFKA_VERSION = "4.4.0"
SCALA_VERSION = "2.13"
LOG4J_VERSION = "2.25.5"
OLDEST_JAVA = 17

FETCH_SECONDS = 600.0
"""How long Maven may take to fetch the jars (about 45 MB)."""

_COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_KAFKA_JAR = f"kafka_{SCALA_VERSION}-{KAFKA_VERSION}.jar"

# Kafka's own dependencies hold log4j-core but nothing that binds SLF4J to it:
# without log4j-slf4j-impl the broker logs nothing, not even that it is ready.
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>riverrun</groupId>
  <artifactId>local-kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_{SCALA_VERSION}</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>{LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


def cache_folder() -> Path:
    """Where jars and data live: ``$XDG_CACHE_HOME/riverrun/kafka``, by default ``~/.cache/...``.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG base directory specification asks.
    """
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = configured if configured.is_absolute() else Path.home() / ".cache"
    return base / "riverrun" / "kafka"


def find_java() -> str:
    """Return the path of a Java that can run Kafka: of ``$JAVA_HOME``, else of ``$PATH``.

    Raises :class:`LocalBrokerError` (NO_JAVA) where there is none, or only an older one.
    """
    of_home = Path(os.environ.get("JAVA_HOME", "")) / "bin" / "java"
    java = str(of_home) if of_home.is_absolute() and of_home.exists() else shutil.which("java")
    advice = f"install Java {OLDEST_JAVA} or newer (on Debian: apt-get install default-jre)"
    if java is None:
        raise LocalBrokerError(
            ExitCode.NO_JAVA,
            f"Java is missing: no 'java' in $JAVA_HOME/bin or on the PATH; {advice}",
        )
    major = _java_major(java)
    if major is None:
        raise LocalBrokerError(
            ExitCode.NO_JAVA, f"Java is missing: '{java} -version' names no version; {advice}"
        )
    if major < OLDEST_JAVA:
        raise LocalBrokerError(
            ExitCode.NO_JAVA,
            f"Java is too old: {java} is version {major}, "
            f"Kafka {KAFKA_VERSION} needs {OLDEST_JAVA}; {advice}",
        )
    return java


def _java_major(java: str) -> int | None:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if found is None:
        return None
    first, second = found.groups()
    # Up to version 8 Java called itself 1.8.
    return int(second) if first == "1" and second else int(first)


def jar_folder(home: Path) -> Path:
    """Where the jars of the fixed versions are once they are fetched."""
    return home / f"jars-{KAFKA_VERSION}-{LOG4J_VERSION}"


def missing_requirement(home: Path) -> str | None:
    """Say what keeps this machine from running a broker, or None where nothing does."""
    try:
        find_java()
        if not jar_folder(home).is_dir():
            _find_maven()
    except LocalBrokerError as missing:
        return str(missing)
    return None


def _find_maven() -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise LocalBrokerError(
            ExitCode.NO_MAVEN,
            "Maven is missing: no 'mvn' on the PATH, and the jars of Kafka "
            f"{KAFKA_VERSION} are not there yet; install Maven 3 (Debian: apt-get install maven)",
        )
    return maven


def fetch_jars(home: Path, report: Callable[[str], None]) -> Path:
    """Return the folder with Kafka's jars, fetching them through Maven the first time.

    Processes that ask at once wait for the one that fetches; the folder appears
    whole or not at all.  Raises :class:`LocalBrokerError` (NO_MAVEN, FETCH_FAILED).
    """
    folder = jar_folder(home)
    if folder.is_dir():
        return folder
    maven = _find_maven()
    lock = home / "fetch.lock"
    waits = "waiting for another process that is fetching the jars"
    with exclusive(lock, FETCH_SECONDS, lambda: report(waits)):
        if not folder.is_dir():
            report(f"fetching Apache Kafka {KAFKA_VERSION} with Maven (45 MB, once) ...")
            _run_maven(maven, home, folder)
            report(f"fetched into {folder}")
    return folder


def _run_maven(maven: str, home: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=home) as name:
        work = Path(name)
        (work / "pom.xml").write_text(_POM, encoding="utf-8")
        jars = work / "jars"
        command = [maven, "-q", "-B", "-C", "-f", str(work / "pom.xml"), _COPY_GOAL]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        try:
            answer = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=FETCH_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LocalBrokerError(
                ExitCode.FETCH_FAILED,
                f"Maven did not fetch Kafka {KAFKA_VERSION} within {FETCH_SECONDS:.0f} s: "
                "check the network and start again (what it has is kept)",
            ) from None
        if answer.returncode != 0 or not (jars / _KAFKA_JAR).is_file():
            last_lines = "\n".join(answer.stdout.splitlines()[-15:])
            raise LocalBrokerError(
                ExitCode.FETCH_FAILED,
                f"Maven could not fetch Kafka {KAFKA_VERSION} "
                f"(exit code {answer.returncode}): check the network; it said:\n{last_lines}",
            )
        jars.rename(folder)
