"""The environment: settings, sources, and the ways in which a job is run."""

import asyncio
import json
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from operators.builtin import CollectSink
from operators.result_buffer import ResultBuffer
from runtime import (
    CheckpointingMode,
    Configuration,
    ConfigurationError,
    JobExecutionError,
    JobStatus,
    RestartStrategies,
    StreamExecutionEnvironment,
)

UNSUPPORTED = {
    "windows": "jobs run on Linux and macOS",
    "free-threaded": "jobs need a Python with the global interpreter lock",
}
"""Where jobs do not run, and what is said there."""


@pytest.fixture(params=UNSUPPORTED)
def refusal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said on the platform that this one is made to look like."""
    if request.param == "windows":
        monkeypatch.setattr(sys, "platform", "win32")
    else:
        monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": 1}.get)
    return UNSUPPORTED[request.param]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    """A new environment."""
    return StreamExecutionEnvironment.get_execution_environment()


def endless() -> Iterator[int]:
    """Numbers without end."""
    number = 0
    while True:
        yield number
        number += 1


def collected(results: "ResultBuffer[int]") -> list[int]:
    """What a job has put in, after its end."""
    results.finish()
    taken: list[int] = []
    while True:
        try:
            taken.append(results.take())
        except StopIteration:
            return taken


def test_a_configuration_sets_keys(env: StreamExecutionEnvironment) -> None:
    """Texts are read as on the command line."""
    env.configure(
        Configuration()
        .set_string("execution.checkpointing.interval", "3s")
        .set_integer("parallelism.default", 2)
    )
    assert (env.get_checkpoint_interval(), env.get_parallelism()) == (3_000, 2)


def test_an_unknown_key_in_a_configuration_is_refused() -> None:
    """As early as it is given."""
    with pytest.raises(ConfigurationError, match=r"did you mean 'parallelism\.default'"):
        StreamExecutionEnvironment.get_execution_environment(
            Configuration({"paralelism.default": "2"})
        )


def test_checkpoints_are_off_until_enabled(env: StreamExecutionEnvironment) -> None:
    """The interval of -1 is PyFlink's word for it."""
    assert env.get_checkpoint_interval() == -1
    env.enable_checkpointing(500, CheckpointingMode.EXACTLY_ONCE)
    assert env.get_checkpoint_interval() == 500
    assert env.get_checkpoint_config().is_checkpointing_enabled()


def test_a_weaker_guarantee_is_refused(env: StreamExecutionEnvironment) -> None:
    """The message says what there is instead."""
    with pytest.raises(ConfigurationError, match="EXACTLY_ONCE"):
        env.enable_checkpointing(500, CheckpointingMode.AT_LEAST_ONCE)


def test_a_restart_strategy_sets_its_keys(env: StreamExecutionEnvironment) -> None:
    """A factory of PyFlink's names is as good as the keys."""
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(4, 250))
    config = env._layers.freeze(None, "job")
    assert config.restart.strategy == "fixed-delay"
    assert (config.restart.fixed_delay_attempts, config.restart.fixed_delay_ms) == (4, 250)


def test_a_job_runs_to_its_end(env: StreamExecutionEnvironment) -> None:
    """Its result says how it went."""
    results: ResultBuffer[int] = ResultBuffer()
    env.from_sequence(1, 5).map(lambda x: x * 10).sink_to(CollectSink(results))
    result = env.execute("tens")
    assert collected(results) == [10, 20, 30, 40, 50]
    assert (result.job_name, result.status) == ("tens", JobStatus.FINISHED)
    assert result.statistics.records_in == 5
    assert result.get_net_runtime() >= 0


def test_a_second_execution_runs_what_was_added_since(env: StreamExecutionEnvironment) -> None:
    """And what that needs; sinks that have run do not run again."""
    first: ResultBuffer[int] = ResultBuffer()
    second: ResultBuffer[int] = ResultBuffer()
    numbers = env.from_collection([1, 2])
    numbers.sink_to(CollectSink(first))
    env.execute()
    numbers.map(lambda x: -x).sink_to(CollectSink(second))
    env.execute()
    assert collected(first) == [1, 2]
    assert collected(second) == [-1, -2]


def test_a_failure_carries_the_users_exception(env: StreamExecutionEnvironment) -> None:
    """The message says where; the cause is the very exception."""

    def fail(value: int) -> int:
        raise KeyError("ts")

    env.from_collection([1]).map(fail).name("clean").uid("clean").print()
    with pytest.raises(JobExecutionError, match=r"job 'j' failed in operator 'clean' \(uid clean"):
        env.execute("j")


def test_a_job_without_operators_is_refused(env: StreamExecutionEnvironment) -> None:
    """Nothing would happen, so something was forgotten."""
    with pytest.raises(ConfigurationError, match="no operators"):
        env.execute()


def test_a_job_without_sinks_is_refused(env: StreamExecutionEnvironment) -> None:
    """Its results would go nowhere."""
    env.from_collection([1]).map(lambda x: x)
    with pytest.raises(ConfigurationError, match="no sink"):
        env.execute()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda env: env.configure({"parallelism.default": "2"}), "takes a Configuration"),
        (lambda env: env.set_restart_strategy("none"), "RestartStrategies.no_restart"),
        (lambda env: Configuration().set_string("a", 5), "a: the value must be str, not int 5"),
        (lambda env: Configuration().set_integer("a", "5"), "must be int, not str"),
        (lambda env: Configuration().set_integer("a", True), "must be int, not bool"),
        (lambda env: Configuration({"a": 5}), "must be str"),
        (lambda env: Configuration({5: "a"}), "a key must be str"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(
    env: StreamExecutionEnvironment,
    use: Callable[[StreamExecutionEnvironment], object],
    message: str,
) -> None:
    """At the line that gives them."""
    with pytest.raises(TypeError, match=message):
        use(env)


def test_missing_uids_are_refused_where_they_are_demanded(env: StreamExecutionEnvironment) -> None:
    """The operators are named."""
    env.get_config().disable_auto_generated_uids()
    env.from_collection([1]).map(lambda x: x).uid("identity").print()
    with pytest.raises(ConfigurationError, match="without a uid: 'Source: Collection Source'"):
        env.execute()


@pytest.mark.parametrize("checkpoints", [False, True])
def test_generated_uids_are_warned_of_once_where_state_is_kept(
    env: StreamExecutionEnvironment,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    checkpoints: bool,
) -> None:
    """Without checkpoints there is nothing to find again, nor in an operator without state."""
    if checkpoints:
        directory = str(tmp_path)
        env.configure(Configuration({"execution.checkpointing.dir": directory}))
        env.enable_checkpointing(1_000)
    sums = env.from_collection([1]).uid("numbers").map(lambda x: x).key_by(lambda x: x).sum()
    sums.name("sums").print().uid("out")
    env.execute()
    warned = [one.getMessage() for one in caplog.records if "without a uid" in one.getMessage()]
    assert len(warned) == checkpoints
    assert all("('sums')" in message for message in warned)


def test_the_plan_is_json_of_nodes(env: StreamExecutionEnvironment) -> None:
    """With types, parallelism and predecessors, as Flink's."""
    env.set_parallelism(2)
    env.from_collection([1]).rebalance().map(lambda x: x).name("same").print()
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [node["pact"] for node in nodes] == ["Data Source", "Operator", "Data Sink"]
    assert nodes[1]["type"] == "same"
    assert nodes[1]["parallelism"] == 2
    assert nodes[1]["predecessors"] == [{"id": nodes[0]["id"], "ship_strategy": "REBALANCE"}]


async def test_execute_within_a_running_loop_says_what_to_do(
    env: StreamExecutionEnvironment,
) -> None:
    """It would block the loop that it runs in."""
    env.from_collection([1]).print()
    with pytest.raises(RuntimeError, match=r"await env\.execute_async"):
        env.execute()
    with pytest.raises(RuntimeError, match=r"await env\.execute_async"):
        env.from_collection([1]).execute_and_collect()


@pytest.mark.parametrize("run", ["execute", "execute_async"])
def test_a_platform_that_cannot_run_jobs_is_refused(
    env: StreamExecutionEnvironment, refusal: str, run: str
) -> None:
    """Before anything is started, here or in a thread."""
    seen: list[int] = []
    env.from_collection([1]).sink_to(CollectSink(seen.append))
    with pytest.raises(ConfigurationError, match=refusal):
        getattr(env, run)()
    assert seen == []


async def test_a_platform_that_cannot_run_jobs_is_refused_in_a_hosts_loop(
    env: StreamExecutionEnvironment, refusal: str
) -> None:
    """By the call itself, not only by awaiting the client."""
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=refusal):
        env.execute_async()


def test_results_are_not_collected_where_jobs_cannot_run(
    env: StreamExecutionEnvironment, refusal: str
) -> None:
    """Nor does the iterator wait for a job that never begins."""
    with pytest.raises(ConfigurationError, match=refusal):
        env.from_collection([1]).execute_and_collect()


async def test_a_job_runs_in_the_loop_of_its_host(env: StreamExecutionEnvironment) -> None:
    """User code runs in this very thread, and awaiting the client gives the result."""
    threads: set[threading.Thread] = set()
    results: ResultBuffer[threading.Thread] = ResultBuffer()
    env.from_collection([1]).map(lambda _: threading.current_thread()).sink_to(CollectSink(results))
    result = await env.execute_async("hosted")
    results.finish()
    threads.add(results.take())
    assert threads == {threading.current_thread()}
    assert result.status is JobStatus.FINISHED


async def test_waiting_in_the_jobs_own_loop_is_refused(env: StreamExecutionEnvironment) -> None:
    """`result()` would wait for itself."""
    env.from_collection([1]).print()
    client = env.execute_async()
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="await this instead"):
        client.get_job_execution_result().result()
    await client


async def test_a_failure_in_a_hosts_loop_comes_out_of_await(
    env: StreamExecutionEnvironment,
) -> None:
    """As it does from `execute`."""
    env.from_collection([0]).map(lambda x: 1 // x).print()
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        await env.execute_async()


def test_a_job_runs_beside_the_program(env: StreamExecutionEnvironment) -> None:
    """Without a loop it has a thread of its own; the client waits for it."""
    results: ResultBuffer[int] = ResultBuffer()
    env.from_collection([1, 2]).sink_to(CollectSink(results))
    client = env.execute_async("beside")
    assert client.get_job_execution_result().result(10).job_id == client.get_job_id()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert collected(results) == [1, 2]


@pytest.mark.parametrize("method", ["stop", "cancel"])
def test_a_client_ends_an_endless_job(env: StreamExecutionEnvironment, method: str) -> None:
    """The future of the request is done when the job has ended."""
    env.from_collection(endless()).filter(lambda _: False).print()
    client = env.execute_async("endless")
    getattr(client, method)().result(10)
    assert client.get_job_status().result().is_terminal_state()


def test_results_are_iterated_while_the_job_runs(env: StreamExecutionEnvironment) -> None:
    """Leaving early stops the job."""
    squares = env.from_collection(endless()).map(lambda x: x * x)
    with squares.execute_and_collect("squares") as results:
        assert [next(results) for _ in range(4)] == [0, 1, 4, 9]
    assert "job squares" not in [thread.name for thread in threading.enumerate()]


def test_a_failure_is_raised_where_the_results_end(env: StreamExecutionEnvironment) -> None:
    """What came before it is given out."""
    results = env.from_collection([2, 1, 0]).map(lambda x: 2 // x).execute_and_collect()
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        list(results)


def test_a_limit_gives_a_list(env: StreamExecutionEnvironment) -> None:
    """And stops the job after it."""
    assert env.from_collection(endless()).execute_and_collect("some", limit=3) == [0, 1, 2]
