"""`python -m runtime`: how a job file runs, and how its process ends."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.job_process import JobFolder, outcome

HEAD = """
import sys
from runtime import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
"""

ENDLESS = f"""{HEAD}
import itertools
def show_first(number):
    if number == 0:
        print("running", flush=True)
    return number
env.from_collection(itertools.count()).map(show_first).filter(lambda _: False).print()
"""

BLOCKED = f"""{HEAD}
import threading
def block(number):
    print("running", flush=True)
    threading.Event().wait()
env.from_collection([1]).map(block).print()
env.execute()
"""


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """An empty folder for a job."""
    return JobFolder(tmp_path)


def test_a_finished_job_ends_with_code_0(folder: JobFolder) -> None:
    """Its output is all that is on standard output."""
    folder.write(f"{HEAD}env.from_collection([1, 2]).map(lambda x: x * 10).print()\nenv.execute()")
    ended = folder.run()
    assert (ended.code, ended.out) == (0, "10\n20\n")


def test_the_end_of_a_job_is_told_with_its_counts(folder: JobFolder) -> None:
    """A log that just breaks off does not say whether all was done."""
    folder.write(f"{HEAD}env.from_collection([1, 2]).filter(bool).print()\nenv.execute()")
    assert re.search(r"is finished after \d+\.\d s: records in 2, out 2\n", folder.run().err)


def test_a_platform_that_cannot_run_jobs_is_named_in_one_sentence(folder: JobFolder) -> None:
    """As all that is refused before a job begins."""
    folder.write(f"{HEAD}env.from_collection([1]).print()\nsys.platform = 'win32'\nenv.execute()\n")
    ended = folder.run("--quiet")
    assert (ended.code, ended.out) == (2, "")
    assert "riverrun: error: jobs run on Linux and macOS" in ended.err.splitlines()[-1]


def test_the_job_file_runs_as_the_main_program(folder: JobFolder) -> None:
    """With its own arguments, and modules beside it."""
    (folder.path / "beside.py").write_text("LABEL = 'beside'\n")
    folder.write(
        f"{HEAD}import beside\n"
        "class Click:\n    pass\n"
        "values = [__name__, *sys.argv[1:], beside.LABEL, Click.__module__]\n"
        "values += [sys.modules['__main__'].Click is Click]\n"
        "env.from_collection(values).print()\nenv.execute()"
    )
    folder.path = folder.path.parent
    ended = folder.run("--quiet", "--", "--input", "a")
    assert ended.out.split() == ["__main__", "--input", "a", "beside", "__main__", "True"]
    assert ended.err == ""


def test_a_flag_outranks_the_job(folder: JobFolder) -> None:
    """The job sees what will run."""
    folder.write(
        f"{HEAD}env.set_parallelism(1)\nprint(env.get_parallelism())\n"
        "env.from_collection([1]).print()\nenv.execute()"
    )
    assert folder.run("-p", "3").out.split()[0] == "3"


def test_the_plan_is_printed_instead_of_run(folder: JobFolder) -> None:
    """Operators, tasks, parallelism and uids; nothing after `execute` happens."""
    folder.write(
        f"{HEAD}env.from_collection([1]).map(str).name('text').uid('t').print()\n"
        "env.execute('counts')\nprint('after')"
    )
    ended = folder.run("--plan", "-p", "2")
    assert ended.code == 0
    assert ended.out.startswith("counts\n")
    assert "text: uid t" in ended.out
    assert "parallelism 2" in ended.out
    assert "after" not in ended.out


def test_json_logs_are_json(folder: JobFolder) -> None:
    """Each line of standard error."""
    folder.write(f"{HEAD}env.from_collection([1]).print()\nenv.execute('counts')")
    ended = folder.run("--json-logs")
    messages = [json.loads(line)["message"] for line in ended.err.splitlines()]
    assert any("'counts'" in message for message in messages)


def test_the_exit_code_of_the_job_file_is_kept(folder: JobFolder) -> None:
    """A job may decide for itself."""
    folder.write("import sys\nsys.exit(7)")
    assert folder.run().code == 7


def test_a_job_beside_the_program_is_waited_for(folder: JobFolder) -> None:
    """The end of the file is not the end of its job."""
    folder.write(f"{HEAD}env.from_collection([1]).print()\nenv.execute_async()")
    ended = folder.run("--quiet")
    assert (ended.code, ended.out) == (0, "1\n")


@pytest.mark.parametrize("plain", [False, True])
def test_a_failure_beside_the_program_ends_with_code_1(folder: JobFolder, plain: bool) -> None:
    """And is reported, though nobody asked for the result; the program's own end is as ever."""
    folder.write(
        f"import atexit\natexit.register(print, 'the end', end='')\n"
        f"{HEAD}import threading\ngo = threading.Event()\n"
        "def fail(x):\n    go.wait()\n    return 1 // x\n"
        "env.from_collection([0]).map(fail).print()\nenv.execute_async()\ngo.set()"
    )
    ended = folder.run("--quiet", plain=plain)
    assert ended.code == 1
    assert ended.out == "the end"
    assert "ZeroDivisionError" in ended.err


def test_a_failure_that_was_asked_for_is_the_program_s_affair(folder: JobFolder) -> None:
    """It may go on after it, and end well."""
    folder.write(
        f"{HEAD}env.from_collection([0]).map(lambda x: 1 // x).print()\n"
        "print(type(env.execute_async().get_job_execution_result().exception()).__name__)"
    )
    ended = folder.run(plain=True)
    assert (ended.code, ended.out) == (0, "JobExecutionError\n")


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_a_job_cleanly(
    folder: JobFolder, number: signal.Signals, code: int, plain: bool
) -> None:
    """Nothing after the job begins; with and without the command line."""
    folder.write(f"{ENDLESS}env.execute()\nprint('after')")
    process = folder.start(plain=plain)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    ended = outcome(process)
    assert ended.code == code
    assert ended.out == ""
    assert "Traceback" not in ended.err


def test_a_signal_stops_a_job_whose_results_are_iterated(folder: JobFolder) -> None:
    """The program ends with the job."""
    folder.write(
        ENDLESS.replace(".print()", ".execute_and_collect()").replace("env.from", "it = env.from")
        + "for one in it:\n    pass\nprint('after')"
    )
    process = folder.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    ended = outcome(process)
    assert (ended.code, ended.out) == (130, "")


def test_a_second_signal_leaves_although_a_function_blocks(folder: JobFolder) -> None:
    """The event loop does not turn, the handler runs all the same."""
    folder.write(BLOCKED)
    process = folder.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.4)
    process.send_signal(signal.SIGTERM)
    assert outcome(process).code == 143


def test_a_task_that_does_not_end_is_named_and_left(folder: JobFolder) -> None:
    """A coroutine that user code started and that ignores its cancellation holds up nothing."""
    folder.write(
        f"""{HEAD}
import asyncio
async def stubborn():
    while True:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            print("ignored")
def start(number):
    global task
    task = asyncio.get_running_loop().create_task(stubborn())
    return number
env.from_collection([1]).map(start).print()
env.execute()
"""
    )
    ended = folder.run("--quiet")
    assert ended.code == 1
    assert "stubborn" in ended.err
    assert "these tasks did not end; leaving without them" in ended.err
