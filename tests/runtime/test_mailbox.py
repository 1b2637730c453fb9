"""A task's queue of requests."""

import asyncio

import pytest

from runtime.mailbox import Mail, Mailbox
from runtime.turn import LoopTurn, Wakeup


def mail(name: str, log: list[str], *, between: bool = False) -> Mail:
    return Mail(lambda: log.append(name), between_records=between)


@pytest.fixture
async def wakeup() -> Wakeup:
    return Wakeup(LoopTurn(asyncio.get_running_loop(), lambda: 0.0))


async def test_mail_is_taken_in_the_order_it_came(wakeup: Wakeup) -> None:
    """Of all kinds."""
    log: list[str] = []
    box = Mailbox(wakeup)
    for name in "abc":
        box.put(mail(name, log, between=name == "b"))
    while (one := box.take()) is not None:
        one.run()
    assert log == ["a", "b", "c"]


async def test_timers_are_taken_past_other_mail(wakeup: Wakeup) -> None:
    """The others keep their order and wait."""
    log: list[str] = []
    box = Mailbox(wakeup)
    for name in "aBcD":
        box.put(mail(name, log, between=name.isupper()))
    while (one := box.take(between_records=True)) is not None:
        one.run()
    assert log == ["B", "D"]
    assert len(box.mails) == 2


async def test_mail_wakes_the_task(wakeup: Wakeup) -> None:
    """Whatever it waits for."""
    wakeup.waits = True
    Mailbox(wakeup).put(mail("a", []))
    assert not wakeup.waits


async def test_a_closed_mailbox_takes_nothing(wakeup: Wakeup) -> None:
    """What is left is dropped, and so is what still comes."""
    box = Mailbox(wakeup)
    box.put(mail("a", []))
    box.close()
    wakeup.waits = True
    box.put(mail("b", []))
    assert box.take() is None
    assert wakeup.waits


async def test_mail_that_cannot_wait_is_taken_first(wakeup: Wakeup) -> None:
    """A failure is told before what came before it."""
    log: list[str] = []
    box = Mailbox(wakeup)
    box.put(mail("a", log))
    box.put_first(mail("b", log))
    while (one := box.take()) is not None:
        one.run()
    assert log == ["b", "a"]
