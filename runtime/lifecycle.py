"""Opens and closes the operators of one task."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.chain import ChainNode
from runtime.errors import USER_FAILURES, is_own_cancellation


async def open_operators(nodes: Sequence[ChainNode], *, finished: bool = False) -> None:
    """Sets up, restores and opens, the last of the chain first: receivers before senders.

    Operators that had `finished` before the checkpoint they are restored from only do what was
    left to do outside; they stay shut.
    """
    for node in reversed(nodes):
        operator = node.operator
        try:
            if finished:
                await operator.restore_finished(node.context)
                continue
            operator.setup(node.context)
            operator.initialize_state()
            operator.open()
            await operator.start()
        except USER_FAILURES as error:
            if is_own_cancellation(error):
                raise
            raise node.failure(error, doing="opening") from error


async def finish_operators(nodes: Sequence[ChainNode]) -> None:
    """Lets each operator complete what it still has outside (a sink flushes)."""
    for node in nodes:
        try:
            await node.operator.finish()
        except USER_FAILURES as error:
            if is_own_cancellation(error):
                raise
            raise node.failure(error, doing="finishing") from error


async def close_operators(nodes: Sequence[ChainNode]) -> list[Exception]:
    """Closes each operator, clients too, whatever fails on the way; returns what went wrong."""
    errors: list[Exception] = []
    for node in nodes:
        try:
            node.operator.close()
        except USER_FAILURES as error:
            errors.append(node.failure(error, doing="closing"))
        try:
            await node.operator.close_async()
        except USER_FAILURES as error:
            if is_own_cancellation(error):
                raise
            errors.append(node.failure(error, doing="closing"))
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
