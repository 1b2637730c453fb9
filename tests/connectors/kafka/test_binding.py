"""The check of what is used of aiokafka."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from connectors.kafka import binding

CONNECTOR = Path(binding.__file__).parent


def test_a_missing_internal_is_one_clear_error() -> None:
    """It names what is missing, what is installed and what is wanted."""
    lacking = SimpleNamespace(__name__="AIOKafkaClient")
    with pytest.raises(ImportError, match=r"0\.14.*0\.14\.\d.*lacks AIOKafkaClient\.no_such_thing"):
        binding.check(((lacking, ("no_such_thing",)),))


def test_only_one_module_of_the_connector_imports_the_client() -> None:
    """So another version of it touches one file."""
    importing = set()
    for path in CONNECTOR.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in getattr(node, "names", ())]
            module = getattr(node, "module", None) or ""
            if isinstance(node, ast.Import | ast.ImportFrom) and any(
                each.split(".")[0] == "aiokafka" for each in [*names, module]
            ):
                importing.add(path.name)
    assert importing == {"binding.py"}
