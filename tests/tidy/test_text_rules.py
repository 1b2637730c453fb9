"""Planted words, dead links and missing files of the walk are found."""

import pytest

from tests.tidy import text_rules

FILES = {"runtime/task.py": 400, "runtime/gate.py": 401, "docs/decisions/README.md": 10, "docs": 0}
MODULES = frozenset({"task.py", "gate.py"})


def test_an_open_end_is_found_with_its_line() -> None:
    """The markers of unfinished work are reported where they stand."""
    marker = "TO" + "DO"
    (violation,) = text_rules.forbidden_words("a.py", f"x = 1\n# {marker}: later\n")
    assert violation.line == 2


@pytest.mark.parametrize("word", ["FIX" + "ME", "T" + "07", "../sha" + "red/x", "/wo" + "rk/x"])
def test_a_forbidden_word_is_found(word: str) -> None:
    """References that mean nothing outside one place are reported in any text."""
    assert list(text_rules.forbidden_words("README.md", f"see {word}"))


@pytest.mark.parametrize("text", ["at 2024-01-01T07:00", "TodoList", "T201", "a/work/b", "shared"])
def test_words_that_only_resemble_pass(text: str) -> None:
    """Timestamps, longer codes and other paths are free."""
    assert not list(text_rules.forbidden_words("README.md", text))


TYPES = "# type" + ": ignore"
LINT = "# no" + "qa"


@pytest.mark.parametrize(
    "comment",
    [
        TYPES,
        f"{TYPES}[arg-type]",
        f"{TYPES}  # too clever",
        LINT,
        f"{LINT}: B027",
        f"{LINT}: B027 -",
    ],
)
def test_an_ignore_without_code_or_reason_is_found(comment: str) -> None:
    """A code alone and a reason alone are both too little."""
    assert list(text_rules.unreasoned_ignores("a.py", f"x = 1  {comment}\n"))


@pytest.mark.parametrize(
    "comment",
    [
        f"{TYPES}[arg-type]  # the stub knows only str",
        f"{TYPES}[arg-type, misc] # untyped base",
        f"{LINT}: B027 - optional to override",
        f"{LINT}: B027, D102  # optional to override",
    ],
)
def test_an_ignore_with_code_and_reason_passes(comment: str) -> None:
    """The reason follows the code after a hash or a dash."""
    assert not list(text_rules.unreasoned_ignores("a.py", f"x = 1  {comment}\n"))


def test_a_dead_link_is_found() -> None:
    """Links are read from the folder of their document; the outside world is not checked."""
    text = "[a](decisions/README.md#top) [b](https://example.org/x) [c](gone.md)"
    (violation,) = text_rules.broken_links("docs/guide.md", text, FILES.get)
    assert "gone.md" in violation.message


def test_a_missing_file_of_the_walk_is_found() -> None:
    """A path that is not there is reported, with or without backticks."""
    found = list(
        text_rules.walk_files("A.md", "`runtime/gone.py` runtime/task.py", FILES.get, MODULES)
    )
    assert ["runtime/gone.py" in one.message for one in found] == [True]


def test_a_long_file_of_the_walk_is_found() -> None:
    """A reader meets no file over the limit on the way."""
    (violation,) = text_rules.walk_files("A.md", "`runtime/gate.py`", FILES.get, MODULES)
    assert "401" in violation.message


def test_a_bare_module_name_of_the_walk_must_exist() -> None:
    """A module may be named without its folder, if there is one of that name."""
    found = list(text_rules.walk_files("A.md", "`task.py`, then `none.py`", FILES.get, MODULES))
    assert ["none.py" in one.message for one in found] == [True]
