"""`from runtime import ...`: all names are there, and nothing is loaded before it is used."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import runtime

IMPORT_MS_MAX = 150


def run(code: str) -> object:
    """What a fresh interpreter prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    return json.loads(done.stdout)


def test_every_name_can_be_imported() -> None:
    """The table of names leads to definitions."""
    for name in runtime.__all__:
        assert getattr(runtime, name).__name__ == name


def test_type_checkers_see_the_same_names() -> None:
    """The imports that only they read name the modules of the table."""
    tree = ast.parse(Path(runtime.__file__).read_text())
    seen = {
        alias.name: one.module
        for one in ast.walk(tree)
        if isinstance(one, ast.ImportFrom) and one.level == 0
        for alias in one.names
    }
    assert {name: seen[name] for name in runtime.__all__} == runtime._HOME_OF


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with every module."""
    with pytest.raises(AttributeError, match="no name 'Stream'"):
        _ = runtime.Stream


def test_a_name_of_a_connector_leads_to_it() -> None:
    """Also where it is imported, and each name of the table is where it says."""
    with pytest.raises(ImportError, match=r"from connectors\.kafka import KafkaSource"):
        exec("from runtime import KafkaSource")
    for name, home in runtime._by_name(runtime._ELSEWHERE).items():
        assert hasattr(importlib.import_module(home), name)
        assert name not in runtime.__all__


def test_a_name_of_what_is_not_built_says_so() -> None:
    """It is no misspelling; who builds it takes it off the list."""
    with pytest.raises(ImportError, match="EventTimeSessionWindows of PyFlink is not there yet"):
        exec("from runtime import EventTimeSessionWindows")
    assert not set(runtime._NOT_YET.split()) & set(runtime.__all__)


def test_a_type_checker_refuses_an_unknown_name(tmp_path: Path) -> None:
    """`__getattr__` must not make every name look as if it were there."""
    job = tmp_path / "job.py"
    job.write_text("from runtime import Stream, StreamExecutionEnvironment\n")
    root = Path(runtime.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(job)],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        timeout=55,
    )
    assert 'has no attribute "Stream"' in done.stdout
    assert "Found 1 error" in done.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    """Neither the event loop nor a client of the outside world, and in a moment."""
    code = (
        "import sys, time, json; start = time.perf_counter(); import runtime;"
        "print(json.dumps([(time.perf_counter() - start) * 1000,"
        " [m for m in ('uvloop', 'aiokafka', 'rocksdict', 'asyncio') if m in sys.modules]]))"
    )
    elapsed_ms, loaded = run(code)
    assert loaded == []
    assert elapsed_ms < IMPORT_MS_MAX


def test_a_job_loads_no_client_of_the_outside_world() -> None:
    """Kafka and RocksDB come with what uses them."""
    code = (
        "import sys, json; from runtime import StreamExecutionEnvironment as E;"
        "print(json.dumps([m for m in ('aiokafka', 'rocksdict') if m in sys.modules]))"
    )
    assert run(code) == []
