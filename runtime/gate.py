"""All input channels of one subtask, merged fairly into one order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from operators.elements import ChannelElement
from runtime.channel import Channel


class InputGate:
    """Takes from the channels that hold something, in turn.

    A channel that waits in a barrier alignment is blocked: it keeps its place but is not taken
    from until `unblock_all`.
    """

    __slots__ = ("channel", "channels", "ready")

    def __init__(self, channels: Sequence[Channel], on_data: Callable[[], None]) -> None:
        self.channels = tuple(channels)
        self.channel: Channel | None = None
        """The channel that the last element came from."""
        self.ready: deque[Channel] = deque()
        """The channels that hold something and are not blocked, in the order of their turns."""
        for index, channel in enumerate(self.channels):
            channel.index = index
            channel.connect_reader(self.ready, on_data)

    def take(self, records_max: int) -> ChannelElement:
        """The next element, at most `records_max` records of a batch; a channel must be ready."""
        ready = self.ready
        self.channel = channel = ready.popleft()
        element = channel.take(records_max)
        if channel.queue:
            ready.append(channel)
        return element

    def block(self, channel: Channel) -> None:
        """Takes nothing more from the channel that gave the last element."""
        channel.blocked = True
        if self.ready and self.ready[-1] is channel:
            # It went to the end of the line when its barrier was taken.
            self.ready.pop()

    def unblock_all(self) -> None:
        """Lets all blocked channels take part again."""
        for channel in self.channels:
            if channel.blocked:
                channel.blocked = False
                if channel.queue:
                    self.ready.append(channel)
