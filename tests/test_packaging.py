"""What is installed: the four packages with their types, and the command."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("statebackends", "operators", "connectors", "runtime")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a wheel, which is built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    sources.mkdir()
    for name in (*PACKAGES, "examples", "tests"):
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(sources)]
    subprocess.run(command, check=True, capture_output=True, timeout=50)
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_the_four_packages_only(files: set[str]) -> None:
    """Neither tests nor examples, but every module of the packages."""
    found = {name for name in files if ".dist-info/" not in name and name.endswith(".py")}
    modules = {
        path.relative_to(ROOT).as_posix()
        for each in PACKAGES
        for path in (ROOT / each).rglob("*.py")
    }
    assert found == modules
    assert {name.partition("/")[0] for name in files if ".dist-info/" not in name} == set(PACKAGES)


def test_each_package_is_typed(files: set[str]) -> None:
    """Type checkers look for the mark."""
    assert {f"{package}/py.typed" for package in PACKAGES} <= files


def test_the_command_is_the_module() -> None:
    """`riverrun` says what `python -m runtime` says."""
    commands = (
        [str(Path(sys.executable).with_name("riverrun"))],
        [sys.executable, "-m", "runtime"],
    )
    said = [
        subprocess.run(
            [*command, "--no-such"], check=False, capture_output=True, text=True, timeout=30
        )
        for command in commands
    ]
    assert [each.returncode for each in said] == [2, 2]
    assert said[0].stderr == said[1].stderr != ""
