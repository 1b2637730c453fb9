"""What the documents show runs as it stands, and what they name is there."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.command_line import parse

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
)
JOBS = ("README.md", "docs/guide.md", "docs/connectors.md")
RECORDS = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def text_of(document: str) -> str:
    """The text of a document."""
    return (ROOT / document).read_text("utf-8")


def blocks(document: str, language: str) -> str:
    """All blocks of a language in a document, one behind the other."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", text_of(document), re.DOTALL | re.MULTILINE)
    return "\n\n".join(found)


def commands(document: str) -> list[list[str]]:
    """The command lines of a document, as words without the comments behind them."""
    lines = re.findall(r"^\$ (.*)$", blocks(document, "console"), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def by_sink(output: str) -> dict[str, list[str]]:
    """The lines of each print sink: branches of a job work side by side, in no order."""
    lines: dict[str, list[str]] = {}
    for line in output.splitlines():
        sink, mark, _ = line.rpartition("> ")
        lines.setdefault(sink + mark, []).append(line)
    return lines


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder in which nothing of this repository lies."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.parametrize("document", JOBS)
def test_the_job_of_a_document_prints_what_it_promises(document: str, tmp_path: Path) -> None:
    """The Python of the document is a program, its text block is the output of it."""
    (tmp_path / "job.py").write_text(blocks(document, "python"))
    done = run_python(tmp_path, "-m", "runtime", "job.py", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert by_sink(done.stdout) == by_sink(blocks(document, "text"))


def test_the_tests_of_the_page_about_testing_pass(tmp_path: Path) -> None:
    """The Python of the page is a test file, and all of it passes."""
    code = blocks("docs/testing.md", "python")
    (tmp_path / "test_page.py").write_text(code)
    done = run_python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py")
    assert done.returncode == 0, done.stdout
    assert f"{code.count('def test_')} passed" in done.stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_options_of_shown_commands_are_known(document: str) -> None:
    """A command that runs a job is understood, whatever the job."""
    for words in commands(document):
        if "runtime" in words and words[words.index("runtime") - 1] == "-m":
            command = parse(words[words.index("runtime") + 1 :])
            assert command.job_file.endswith(".py")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_shown_modules_and_targets_are_there(document: str) -> None:
    """`python -m` names a module, `make` a target."""
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    for words in commands(document):
        if words[0] == "make":
            assert words[1] in targets
        elif words[:2] == ["python", "-m"]:
            assert importlib.util.find_spec(words[2]) is not None, words


@pytest.mark.parametrize("record", RECORDS)
def test_the_index_of_decisions_lists_every_record(record: str) -> None:
    """The index links each record by its title."""
    title = text_of(f"docs/decisions/{record}").splitlines()[0].removeprefix("# ")
    assert f"[{title}]({record})" in text_of("docs/decisions/README.md")


def test_the_numbers_of_decisions_are_their_own() -> None:
    """No two records have one number."""
    numbers = [record.partition("-")[0] for record in RECORDS]
    assert len(numbers) == len(set(numbers))
