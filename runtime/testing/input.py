"""The input of the operators under test: a source that reads what the test gives it."""

from __future__ import annotations

from collections import deque

from operators.builtin import CollectionSource
from operators.elements import StreamElement
from operators.source import InputStatus
from operators.source_operator import SourceOperator
from operators.stream_operator import Work
from operators.watermarks import WatermarkStrategy


class HarnessInput(SourceOperator):
    """Puts out the elements that it was given, each as one; ends once it is told to."""

    def __init__(self) -> None:
        super().__init__(CollectionSource[object](()), WatermarkStrategy.no_watermarks())
        self._elements: deque[StreamElement] = deque()
        self.ended = False

    def give(self, element: StreamElement) -> None:
        """Adds an element to what will be read."""
        self._elements.append(element)
        self.context.output_freed()

    def end(self) -> None:
        """Nothing will be added any more."""
        self.ended = True
        self.context.output_freed()

    def poll(self, records_max: int) -> Work | InputStatus:
        """The next element, a batch in one piece whatever its size."""
        if self._elements:
            return (self._elements.popleft(),)
        return InputStatus.END_OF_INPUT if self.ended else InputStatus.NOTHING_AVAILABLE

    def initialize_state(self) -> None:
        """Nothing: there is no reader."""

    async def start(self) -> None:
        """Nothing."""

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Nothing: the test knows what it gave."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""

    async def close_async(self) -> None:
        """Nothing."""
