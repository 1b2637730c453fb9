"""The fair merge of a subtask's input channels."""

from operators.elements import CheckpointBarrier, RecordBatch
from runtime.channel import Channel, OutputRoom
from runtime.gate import InputGate


def _gate(count: int) -> tuple[InputGate, list[Channel]]:
    channels = [Channel() for _ in range(count)]
    for channel in channels:
        channel.connect_writer(OutputRoom(), lambda: None)
    return InputGate(channels, lambda: None), channels


def test_channels_take_turns() -> None:
    """A channel with a long backlog does not hold up another."""
    gate, (first, second) = _gate(2)
    first.put(RecordBatch(["a1", "a2", "a3"]))
    second.put(RecordBatch(["b1", "b2"]))

    taken = [gate.take(1).values[0] for _ in range(5)]  # type: ignore[union-attr]  # only batches
    assert taken == ["a1", "b1", "a2", "b2", "a3"]
    assert not gate.ready


def test_a_blocked_channel_keeps_its_backlog_until_unblocked() -> None:
    """Between its barrier and the end of the alignment nothing is taken from a channel."""
    gate, (first, second) = _gate(2)
    first.put(CheckpointBarrier(1, 0))
    first.put(RecordBatch(["behind the barrier"]))
    gate.take(10)
    assert gate.channel is first
    gate.block(first)
    first.put(RecordBatch(["later"]))
    second.put(RecordBatch(["free"]))

    assert gate.take(10).values == ["free"]  # type: ignore[union-attr]  # a batch
    assert not gate.ready
    gate.unblock_all()
    assert gate.take(10).values == ["behind the barrier", "later"]  # type: ignore[union-attr]  # as above


def test_data_in_an_empty_blocked_channel_wakes_nobody() -> None:
    """A blocked channel that gets data becomes ready only when it is unblocked."""
    woken: list[int] = []
    channels = [Channel(), Channel()]
    gate = InputGate(channels, lambda: woken.append(1))
    channels[0].put(CheckpointBarrier(1, 0))
    gate.take(1)
    gate.block(channels[0])
    channels[0].put(CheckpointBarrier(2, 0))

    assert len(woken) == 1
    assert not gate.ready
    gate.unblock_all()
    assert gate.ready
