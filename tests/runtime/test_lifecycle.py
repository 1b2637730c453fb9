"""Opening, finishing and closing the operators of a task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from operators.elements import RecordBatch
from operators.stream_operator import StreamOperator, Work
from runtime.chain import ChainNode
from runtime.errors import OperatorFailure
from runtime.lifecycle import close_operators, finish_operators, notify_operators, open_operators
from tests.runtime.chain_parts import context
from tests.runtime.task_rig import settle


class Logged(StreamOperator):
    """Notes each call; raises in the one it is told to fail in."""

    def __init__(self, name: str, log: list[str], failing: str = "") -> None:
        self._name = name
        self._log = log
        self._failing = failing

    def _call(self, what: str) -> None:
        self._log.append(f"{self._name} {what}")
        if what == self._failing:
            raise ValueError(f"{what} failed")

    def process_batch(self, batch: RecordBatch) -> Work:
        return ()

    def setup(self, context: Any) -> None:
        super().setup(context)
        self._call("setup")

    def initialize_state(self) -> None:
        self._call("initialize_state")

    def open(self) -> None:
        self._call("open")

    async def start(self) -> None:
        self._call("start")

    async def restore_finished(self, context: Any) -> None:
        self._call("restore_finished")

    async def finish(self) -> None:
        self._call("finish")

    def close(self) -> None:
        self._call("close")

    async def close_async(self) -> None:
        self._call("close_async")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._call("complete")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._call("aborted")


def nodes(log: list[str], failing: str = "", failing_one: str = "a") -> list[ChainNode]:
    return [
        ChainNode(Logged(name, log, failing if name == failing_one else ""), context(name))
        for name in "ab"
    ]


OPENING = ["setup", "initialize_state", "open", "start"]


async def test_receivers_open_before_senders() -> None:
    """Each in the order of the contract."""
    log: list[str] = []
    await open_operators(nodes(log))
    assert log == [f"{name} {what}" for name in "ba" for what in OPENING]


async def test_what_had_finished_is_not_opened() -> None:
    """It only does what was left to do outside."""
    log: list[str] = []
    await open_operators(nodes(log), finished=True)
    assert log == ["b restore_finished", "a restore_finished"]


@pytest.mark.parametrize("failing", [*OPENING, "restore_finished"])
async def test_a_failure_of_opening_names_the_operator(failing: str) -> None:
    """And what it was doing."""
    with pytest.raises(OperatorFailure, match=r"operator 'a'.*opening") as failed:
        await open_operators(nodes([], failing), finished=failing == "restore_finished")
    assert str(failed.value.__cause__) == f"{failing} failed"


async def test_senders_finish_before_receivers() -> None:
    """What a sender still has goes through its receivers."""
    log: list[str] = []
    await finish_operators(nodes(log))
    assert log == ["a finish", "b finish"]


async def test_a_failure_of_finishing_names_the_operator() -> None:
    """Records may not be safe outside: the task fails."""
    with pytest.raises(OperatorFailure, match=r"operator 'b'.*finishing"):
        await finish_operators(nodes([], "finish", "b"))


@pytest.mark.parametrize("failing", ["close", "close_async"])
async def test_every_operator_is_closed_whatever_becomes_of_the_others(failing: str) -> None:
    """Both ways; what went wrong is returned."""
    log: list[str] = []
    (error,) = await close_operators(nodes(log, failing))
    assert log == ["a close", "a close_async", "b close", "b close_async"]
    assert "operator 'a'" in str(error)
    assert "closing" in str(error)


class AwaitsItsOwn(Logged):
    """Cancels a task of its own and awaits it, in one of its calls."""

    async def _await_cancelled(self, what: str) -> None:
        if what == self._failing:
            own = asyncio.ensure_future(asyncio.Event().wait())
            own.cancel()
            await own

    async def start(self) -> None:
        await self._await_cancelled("start")

    async def finish(self) -> None:
        await self._await_cancelled("finish")

    async def close_async(self) -> None:
        self._call("close_async")
        await self._await_cancelled("await")


def awaiting(log: list[str], failing: str) -> list[ChainNode]:
    return [
        ChainNode(AwaitsItsOwn("a", log, failing), context("a")),
        ChainNode(Logged("b", log), context("b")),
    ]


async def test_a_cancellation_within_an_operator_is_its_failure() -> None:
    """Nobody cancelled the task: it must not look like a stop, and all others are closed."""
    log: list[str] = []
    with pytest.raises(OperatorFailure, match=r"'a'.*opening") as failed:
        await open_operators(awaiting(log, "start"))
    assert isinstance(failed.value.__cause__, asyncio.CancelledError)
    with pytest.raises(OperatorFailure, match=r"'a'.*finishing"):
        await finish_operators(awaiting(log, "finish"))
    log.clear()
    (error,) = await close_operators(awaiting(log, "await"))
    assert log == ["a close", "a close_async", "b close", "b close_async"]
    assert "operator 'a'" in str(error)


async def test_a_cancellation_of_the_task_itself_passes_through() -> None:
    """It is no failure of the operator that happened to be awaited."""

    class Waits(Logged):
        async def start(self) -> None:
            self._call("start")
            await asyncio.Event().wait()

    log: list[str] = []
    opening = asyncio.ensure_future(open_operators([ChainNode(Waits("a", log), context("a"))]))
    await settle()
    assert log[-1] == "a start"
    opening.cancel()
    await asyncio.wait([opening])
    assert opening.cancelled()


@pytest.mark.parametrize(("complete", "what"), [(True, "complete"), (False, "aborted")])
def test_every_operator_is_told_how_a_checkpoint_ended(complete: bool, what: str) -> None:
    """Upstream first."""
    log: list[str] = []
    notify_operators(nodes(log), 7, complete=complete)
    assert log == [f"a {what}", f"b {what}"]


def test_a_failure_of_being_told_names_the_checkpoint() -> None:
    """With the operator."""
    with pytest.raises(OperatorFailure, match=r"operator 'a'.*checkpoint 7"):
        notify_operators(nodes([], "complete"), 7, complete=True)
