"""Planted violations of the rules over syntax trees are found, clean code passes."""

import ast
from collections.abc import Callable, Iterator

import pytest

from tests.tidy import source_rules
from tests.tidy.violation import Violation

Rule = Callable[[str, ast.Module], Iterator[Violation]]


def found(rule: Rule, text: str, path: str = "runtime/task.py") -> list[tuple[int, str]]:
    """The lines and symbols that a rule reports for a source text."""
    return [(one.line, one.symbol) for one in rule(path, ast.parse(text))]


@pytest.mark.parametrize(
    ("path", "limit"),
    [("runtime/task.py", 400), ("tests/runtime/test_task.py", 400), ("examples/count.py", 80)],
)
def test_a_file_over_its_limit_is_found(path: str, limit: int) -> None:
    """The last allowed line passes, one more does not; examples are shorter."""
    assert not list(source_rules.file_length(path, "x = 1\n" * limit))
    assert list(source_rules.file_length(path, "x = 1\n" * (limit + 1)))


def test_a_long_function_is_found_by_its_qualified_name() -> None:
    """A method of 71 lines is reported, one of 70 is not."""
    text = "class A:\n    def f(self):\n" + "        x = 1\n" * 70
    assert found(source_rules.function_length, text) == [(2, "A.f")]
    assert not found(source_rules.function_length, text.replace("        x = 1\n", "", 1))


def test_a_docstring_does_not_lengthen_a_function() -> None:
    """Only the code of a function counts."""
    text = 'def f():\n    """Say.\n' + "    more\n" * 90 + '    """\n' + "    x = 1\n" * 69
    assert not found(source_rules.function_length, text)
    assert found(source_rules.function_length, text + "    x = 1\n")


@pytest.mark.parametrize("path", ["runtime/utils.py", "operators/common/x.py", "runtime/_base.py"])
def test_a_vague_module_name_is_found(path: str) -> None:
    """Folders and private modules count too."""
    assert found(source_rules.vague_names, "", path)


@pytest.mark.parametrize("name", ["TaskManager", "ChannelImpl", "BaseSource", "StateUtils"])
def test_a_vague_class_name_is_found(name: str) -> None:
    """A word that names no role is reported wherever it stands in the name."""
    assert found(source_rules.vague_names, f"class {name}: ...") == [(1, name)]


def test_words_inside_words_are_no_vague_names() -> None:
    """Database, commonly named things and baseline modules pass."""
    text = "class DatabaseReader: ...\nclass Baseline: ...\n"
    assert not found(source_rules.vague_names, text, "runtime/baseline.py")


def test_missing_docstrings_are_found() -> None:
    """Module, class, function and method are each reported."""
    text = "class A:\n    def f(self): ...\n\ndef g(): ...\n"
    assert found(source_rules.public_docstrings, text) == [(1, ""), (1, "A"), (2, "A.f"), (4, "g")]


def test_a_public_definition_under_a_condition_needs_a_docstring() -> None:
    """An if around a function does not hide it."""
    text = '"""M."""\nif True:\n    def g(): ...\n'
    assert found(source_rules.public_docstrings, text) == [(3, "g")]


def test_private_nested_and_overriding_functions_need_no_docstring() -> None:
    """What is documented at its contract, or not public, passes."""
    text = (
        '"""M."""\n'
        "def _f(): ...\n"
        "class A:\n"
        '    """A."""\n'
        "    def __init__(self): ...\n"
        "    @override\n"
        "    def f(self): ...\n"
        "    @typing.overload\n"
        "    def g(self): ...\n"
        "    @value.setter\n"
        "    def value(self, new): ...\n"
        "    def h(self):\n"
        '        """H."""\n'
        "        def inner(): ...\n"
    )
    assert not found(source_rules.public_docstrings, text)


def test_a_test_without_a_sentence_is_found() -> None:
    """Plain and coroutine tests are reported; fixtures and inner functions are not."""
    text = (
        "def test_a(): ...\n"
        "async def test_b(): ...\n"
        "def fixture():\n"
        "    def test_inner(): ...\n"
        "class TestC:\n"
        "    def test_d(self): ...\n"
    )
    assert found(source_rules.facts_of_tests, text) == [
        (1, "test_a"),
        (2, "test_b"),
        (6, "TestC.test_d"),
    ]


@pytest.mark.parametrize(
    "handler",
    ["except ValueError: pass", "except ValueError: ...", "except OSError: 'ignored'"],
)
def test_a_handler_that_does_nothing_is_found(handler: str) -> None:
    """Pass, an ellipsis and a lone string all swallow the error."""
    rules = [
        one.rule for one in source_rules.swallowed_errors("a.py", ast.parse(f"try: f()\n{handler}"))
    ]
    assert rules == ["swallowed-error"]


def test_a_bare_except_is_found() -> None:
    """It is reported even if it does something."""
    tree = ast.parse("try: f()\nexcept: g()")
    assert [one.rule for one in source_rules.swallowed_errors("a.py", tree)] == ["bare-except"]


def test_only_a_suppress_of_everything_is_found() -> None:
    """A narrow class may be suppressed, every exception may not."""
    text = "with suppress(KeyError): f()\nwith contextlib.suppress(Exception): f()\n"
    assert found(source_rules.swallowed_errors, text) == [(2, "")]
