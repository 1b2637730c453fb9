"""Writes what an operator puts out to the channels of one outgoing edge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from operator import length_hint

from typing_extensions import override

from operators.elements import (
    MAX_TIMESTAMP,
    CheckpointBarrier,
    CheckpointCancelled,
    EndOfInput,
    RecordBatch,
    Watermark,
    WatermarkStatus,
)
from operators.fields import missing_index
from runtime.channel import Channel
from runtime.errors import USER_FAILURES
from statebackends.key_memo import make_room
from statebackends.keygroups import key_group_of, subtask_of
from statebackends.keys import encode_key

ROUTES_REMEMBERED_MAX = 65_536
"""Keys whose target a writer remembers; the oldest are dropped when they are so many."""

ControlElement = Watermark | WatermarkStatus | CheckpointBarrier | CheckpointCancelled | EndOfInput


class RecordWriter(ABC):
    """One outgoing edge of one subtask: its partitioner and its channels."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self.channels = tuple(channels)

    @abstractmethod
    def emit(self, batch: RecordBatch) -> None:
        """Writes a batch; never waits."""

    ending = False
    """The end of input follows and says what a MAX watermark would say before it.

    A channel that ends leaves the receiver's valve; one at MAX would lift the watermark of
    channels that are merely idle.
    """

    def control(self, element: ControlElement) -> None:
        """Writes a control element to every channel, in one step."""
        if self.ending and type(element) is Watermark and element.timestamp == MAX_TIMESTAMP:
            return
        for channel in self.channels:
            channel.put(element)


class ForwardWriter(RecordWriter):
    """Everything to the one receiver."""

    @override
    def emit(self, batch: RecordBatch) -> None:
        self.channels[0].put(batch)


class BroadcastWriter(RecordWriter):
    """Everything to every receiver; they share the batch, which nobody changes any more."""

    @override
    def emit(self, batch: RecordBatch) -> None:
        for channel in self.channels:
            channel.put(batch)


class RebalanceWriter(RecordWriter):
    """Batches in turn to the receivers, starting with the one of the sender's own index."""

    def __init__(self, channels: Sequence[Channel], first: int = 0) -> None:
        super().__init__(channels)
        self._next = first % len(self.channels)

    @override
    def emit(self, batch: RecordBatch) -> None:
        channel = self.channels[self._next]
        self._next = (self._next + 1) % len(self.channels)
        channel.put(batch)


class KeyGroupWriter(RecordWriter):
    """Each record to the owner of its key's key group.

    The key selector runs here, once; the keys travel with the batch.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        key_selector: Callable[[object], Hashable],
        max_parallelism: int,
        failure: Callable[[BaseException, RecordBatch, int], BaseException],
    ) -> None:
        super().__init__(channels)
        self._failure = failure
        self._key_selector = key_selector
        self._max_parallelism = max_parallelism
        self._routes: dict[Hashable, int] = {}

    @override
    def emit(self, batch: RecordBatch) -> None:
        values = batch.values
        selected = iter(values)
        try:
            keys = list(map(self._key_selector, selected))  # The user's function.
        except USER_FAILURES as error:
            index = len(values) - length_hint(selected) - 1
            said = missing_index(self._key_selector, values[index], error)
            raise self._failure(said, batch, index) from said
        if len(keys) != len(values):
            # `map` takes a StopIteration of its function for the end of its input.
            stopped = RuntimeError("the key selector raised StopIteration")
            raise self._failure(stopped, batch, len(keys))
        timestamps = batch.timestamps
        channels = self.channels
        if len(channels) == 1:
            # The receiver's backend refuses keys without a stable form at their first record.
            channels[0].put(RecordBatch(values, timestamps, keys, batch.origin))
            return
        if len(values) == 1:
            target = self._route_all(keys, batch)[0]
            channels[target].put(RecordBatch(values, timestamps, keys, batch.origin))
            return
        routes = self._routes
        try:
            targets = [routes[key] for key in keys]
        except Exception:
            # A new key, or one whose hash fails: that is told with its record.
            targets = self._route_all(keys, batch)
        for index in set(targets):
            mask = [target == index for target in targets]
            channels[index].put(
                RecordBatch(
                    list(compress(values, mask)),
                    None if timestamps is None else list(compress(timestamps, mask)),
                    list(compress(keys, mask)),
                    None if batch.origin is None else _part_origin(batch.origin, mask),
                )
            )

    def _route_all(self, keys: list[Hashable], batch: RecordBatch) -> list[int]:
        targets: list[int] = []
        try:
            for key in keys:
                targets.append(self._route(key))  # noqa: PERF401 - their number says which key failed
        except USER_FAILURES as error:
            raise self._failure(error, batch, len(targets)) from error
        return targets

    def _route(self, key: Hashable) -> int:
        routes = self._routes
        try:
            target = routes.get(key)
        except TypeError:
            # Unhashable: encode_key says which type and what to do.
            target = None
        if target is None:
            group = key_group_of(encode_key(key), self._max_parallelism)
            target = subtask_of(group, self._max_parallelism, len(self.channels))
            make_room(routes, ROUTES_REMEMBERED_MAX)
            routes[key] = target
        return target


def _part_origin(origin: Callable[[int], str], mask: list[bool]) -> Callable[[int], str]:
    """Names the place of a record of the part that `mask` chose."""
    return lambda index: origin([place for place, chosen in enumerate(mask) if chosen][index])
