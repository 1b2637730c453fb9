"""Exits, signals and closed or full output: the process says what happened and leaves in order."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.job_process import JobFolder, outcome

PRINTS = """
from runtime import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(0, {last}).print()
env.execute("prints")
"""


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """A folder with a job that prints more than a pipe holds."""
    made = JobFolder(tmp_path)
    made.write(PRINTS.format(last=1_000_000))
    return made


def shell(folder: JobFolder, line: str) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a command line; JOB in it is the start of the job."""
    job = f"'{sys.executable}' -m runtime job.py"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line.replace("JOB", job)],
        check=False,
        cwd=folder.path,
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_a_closed_pipe_ends_the_job_at_once_in_one_sentence(folder: JobFolder) -> None:
    """Also with checkpoints: no new start brings the reader back."""
    ended = shell(folder, "JOB --quiet --checkpoint-interval 100ms | head -1")
    assert ended.returncode == 1
    assert ended.stdout == "0\n"
    said = ended.stderr.splitlines()[-1]
    assert said.startswith("JobExecutionError: job 'prints' failed in operator 'Sink: Print")
    assert said.endswith("OutputClosedError(standard output was closed by its reader)")


def test_a_full_output_is_named_in_one_sentence(folder: JobFolder) -> None:
    """With the reason of the operating system."""
    ended = shell(folder, "JOB --quiet > /dev/full")
    assert ended.returncode == 1
    (said,) = ended.stderr.splitlines()
    assert said.endswith("standard output cannot be written to: No space left on device)")


def test_a_job_runs_without_standard_streams(folder: JobFolder) -> None:
    """As a daemon may; files and sockets must not take their places."""
    folder.write(PRINTS.format(last=3) + "open('done', 'w').close()")
    assert shell(folder, "JOB <&- >&- 2>&-").returncode == 0
    assert (folder.path / "done").exists()


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('no input today')", 1, "no input today"),
        ("raise KeyboardInterrupt", 130, ""),
        ("import nowhere", 1, "No module named 'nowhere'"),
        ("from runtime import Nothing", 1, "cannot import name 'Nothing'"),
        ("x = '\\0'\n\0", 1, "null bytes"),
        ("env = (", 1, "SyntaxError: '(' was never closed"),
    ],
    ids=["exit", "words", "interrupt", "import", "name", "null", "syntax"],
)
def test_a_job_file_that_ends_itself_keeps_its_exit_code(
    folder: JobFolder, code: str, exit_code: int, said: str
) -> None:
    """What it says comes last, and nothing of the runtime stands around it."""
    folder.write(code)
    ended = folder.run()
    assert ended.code == exit_code
    assert said in (ended.err.splitlines() or [""])[-1]
    assert "runtime/" not in ended.err.replace("runtime/__init__.py", "")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_a_signal_while_the_job_file_is_read_ends_the_process_silently(
    folder: JobFolder, number: int, code: int
) -> None:
    """There is no job to stop yet."""
    # A signal right before `signal.pause()` would find the process waiting for another one.
    folder.write("print('reading', flush=True)\nwhile True:\n    pass")
    process = folder.start()
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    ended = outcome(process)
    assert (ended.code, ended.err) == (code, "")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("env.from_sequence(3, 0).print()", "a number sequence cannot go from 3 down to 0"),
        ("env.from_collection(3).print()", "from_collection() takes an iterable, not int"),
        ("env.from_collection([1]).map(4).print()", "map() takes an object of MapFunction or a"),
        ("s = env.from_collection([1])\ns.print().uid('a')\ns.print().uid('a')", "uid 'a' of op"),
        ("env.from_collection([1]).map(str).set_parallelism(5).set_max_parallelism(3)", "is 5"),
        ("async def f(x): pass\nenv.from_collection([1]).map(f)", "async user functions are not"),
    ],
)
def test_a_graph_that_cannot_work_is_refused_at_its_line(
    folder: JobFolder, lines: str, said: str
) -> None:
    """One sentence with file and line, and the exit code of bad usage."""
    start, _, _ = PRINTS.partition("env.from_sequence")
    folder.write(start + lines)
    ended = folder.run()
    assert ended.code == 2
    (sentence,) = ended.err.splitlines()
    assert sentence.startswith("riverrun: error: ")
    assert said in sentence
    assert sentence.endswith(f"({folder.job}:{len((start + lines).splitlines())})")


@pytest.mark.parametrize("directory", ["a-file", "/proc/nowhere", "s3://bucket/job"])
def test_a_checkpoint_directory_that_cannot_be_used_is_refused(
    folder: JobFolder, directory: str
) -> None:
    """Naming option, path and cause."""
    (folder.path / "a-file").touch()
    ended = folder.run("--checkpoint-interval", "1s", "--checkpoint-dir", directory)
    assert ended.code == 2
    assert ended.out == ""
    said = ended.err.splitlines()[-1]
    assert f"--checkpoint-dir (execution.checkpointing.dir): {directory}" in said
    assert "give a local directory that can be written to" in said


def test_a_job_name_may_hold_anything_that_a_folder_cannot(folder: JobFolder) -> None:
    """Its folder is one level below the directory whatever the name says."""
    folder.write(PRINTS.format(last=3).replace("prints", "a/../b \N{SNOWMAN}"))
    ended = folder.run("--checkpoint-interval", "1s")
    assert ended.code == 0
    assert len(list((folder.path / "checkpoints").iterdir())) == 1


FAILS_ASIDE = """
from runtime import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(lambda n: n / 0).print()
client = env.execute_async("aside")
while not client.get_job_status().result().is_terminal_state():
    pass
"""


def test_a_failure_aside_that_nobody_asked_about_fails_the_process(folder: JobFolder) -> None:
    """Also if it came before the end of the job file."""
    folder.write(FAILS_ASIDE)
    ended = folder.run()
    assert ended.code == 1
    assert ended.err.count("JobExecutionError: job 'aside' failed") == 1


def test_a_failure_aside_is_the_affair_of_who_asked_about_it(folder: JobFolder) -> None:
    """The job file has it in hand and may end well."""
    folder.write(FAILS_ASIDE + "print(client.get_job_execution_result().exception())")
    ended = folder.run()
    assert ended.code == 0
    assert ended.out.startswith("job 'aside' failed in operator 'Map'")


OUTLIVES = """
import threading
from runtime import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(20)
def late(number):
    if number == 0:
        threading.main_thread().join()
    return number
env.from_sequence(0, 50_000).map(late).filter(lambda number: number % 10_000 == 0).print()
env.execute_async("outlives")
"""


def test_a_job_outlives_the_main_program_with_its_checkpoints(folder: JobFolder) -> None:
    """The interpreter closes all thread pools at the end of the main thread."""
    folder.write(OUTLIVES)
    ended = folder.run(plain=True)
    assert ended.out.split() == ["0", "10000", "20000", "30000", "40000", "50000"]
    assert "is finished" in ended.err


ABANDONS = """
from runtime import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(20)
results = env.from_sequence(0, 10**15).execute_and_collect("abandoned")
print(next(results))
"""


@pytest.mark.parametrize("plain", [False, True], ids=["command", "plain"])
@pytest.mark.parametrize("last_line", ["del results", ""], ids=["dropped", "held"])
def test_a_job_whose_results_nobody_can_read_does_not_keep_the_process(
    folder: JobFolder, last_line: str, *, plain: bool
) -> None:
    """It would be held back for ever by the results that wait."""
    folder.write(ABANDONS + last_line)
    ended = folder.run(plain=plain)
    assert ended.code == 0
    assert ended.out == "0\n"
    assert "its results are not wanted any more" in ended.err


def test_a_thread_that_outlives_the_main_program_may_read_all_results(folder: JobFolder) -> None:
    """Only who can read is asked, not who made the iterator."""
    folder.write(
        "import threading\n"
        + ABANDONS.replace("10**15", "99").replace("print(next(results))", "")
        + "def read():\n"
        + "    threading.main_thread().join()\n"
        + "    print(sum(results))\n"
        + "threading.Thread(target=read).start()\n"
    )
    ended = folder.run(plain=True)
    assert ended.out == "4950\n"
