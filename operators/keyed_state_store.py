"""Where user functions get their keyed state from, and the variant that is kept per window."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeVar, cast

from statebackends.backend import KeyedStateBackend
from statebackends.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from statebackends.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
)

T = TypeVar("T")
MK = TypeVar("MK", bound=Hashable)
MV = TypeVar("MV")
IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class KeyedStateStore(Protocol):
    """Hands out state of the current key by descriptor (PyFlink: `KeyedStateStore`)."""

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """One value per key."""
        ...

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list per key."""
        ...

    def get_map_state(self, state_descriptor: MapStateDescriptor[MK, MV]) -> MapState[MK, MV]:
        """A map per key."""
        ...

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A value per key into which others are reduced."""
        ...

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, ACC, OUT]
    ) -> AggregatingState[IN, OUT]:
        """An accumulator per key."""
        ...


class WindowStateStore(KeyedStateStore):
    """State of the current key in one namespace, the window at hand."""

    def __init__(self, backend: KeyedStateBackend) -> None:
        self._backend = backend
        self.namespace: Hashable = None
        """The window whose state is handed out; set by the operator before each user call."""

    def get(self, state_descriptor: StateDescriptor) -> State:
        """The state of any kind."""
        state = self._backend.get_namespaced_state(state_descriptor)
        state.set_current_namespace(self.namespace)
        return state

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """One value per key and window."""
        return cast("ValueState[T]", self.get(state_descriptor))

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list per key and window."""
        return cast("ListState[T]", self.get(state_descriptor))

    def get_map_state(self, state_descriptor: MapStateDescriptor[MK, MV]) -> MapState[MK, MV]:
        """A map per key and window."""
        return cast("MapState[MK, MV]", self.get(state_descriptor))

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A value per key and window into which others are reduced."""
        return cast("ReducingState[T]", self.get(state_descriptor))

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, ACC, OUT]
    ) -> AggregatingState[IN, OUT]:
        """An accumulator per key and window."""
        return cast("AggregatingState[IN, OUT]", self.get(state_descriptor))
