"""Opens and closes the operators of one task."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.chain import ChainNode
from runtime.errors import USER_FAILURES, failure_of


async def open_operators(nodes: Sequence[ChainNode], *, finished: bool = False) -> None:
    """Sets up, restores and opens, the last of the chain first: receivers before senders.

    Operators that had `finished` before the checkpoint they are restored from only do what was
    left to do outside; they stay shut.
    """
    for node in reversed(nodes):
        opening = _restore_finished if finished else _open
        if (error := await failure_of(opening, node)) is not None:
            raise node.failure(error, doing="opening") from error


async def _restore_finished(node: ChainNode) -> None:
    await node.operator.restore_finished(node.context)


async def _open(node: ChainNode) -> None:
    operator = node.operator
    operator.setup(node.context)
    operator.initialize_state()
    operator.open()
    await operator.start()


async def finish_operators(nodes: Sequence[ChainNode]) -> None:
    """Lets each operator complete what it still has outside (a sink flushes)."""
    for node in nodes:
        if (error := await failure_of(node.operator.finish)) is not None:
            raise node.failure(error, doing="finishing") from error


async def close_operators(nodes: Sequence[ChainNode]) -> list[Exception]:
    """Closes each operator, clients too, whatever fails on the way; returns what went wrong."""
    errors: list[Exception] = []
    for node in nodes:
        try:
            node.operator.close()
        except USER_FAILURES as error:
            errors.append(node.failure(error, doing="closing"))
        if (failure := await failure_of(node.operator.close_async)) is not None:
            errors.append(node.failure(failure, doing="closing"))
    return errors


def notify_operators(nodes: Sequence[ChainNode], checkpoint_id: int, *, complete: bool) -> None:
    """Tells each operator how a checkpoint ended."""
    for node in nodes:
        try:
            if complete:
                node.operator.notify_checkpoint_complete(checkpoint_id)
            else:
                node.operator.notify_checkpoint_aborted(checkpoint_id)
        except USER_FAILURES as error:
            doing = f"being told about checkpoint {checkpoint_id}"
            raise node.failure(error, doing=doing) from error
