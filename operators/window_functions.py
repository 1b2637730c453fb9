"""Functions over the contents of a window (PyFlink's names)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from operators.functions import Function
from operators.triggers import Window

if TYPE_CHECKING:
    from operators.keyed_state_store import KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY", bound=Hashable)
W = TypeVar("W", bound=Window)
W_co = TypeVar("W_co", bound=Window, covariant=True)


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Turns a key, a window and its elements into outputs (Flink: `WindowFunction`)."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """The outputs of the window, yielded or returned as a list."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Turns the elements of a window into outputs, with context (Flink's class of that name).

    Outputs are yielded or returned as a list; ``yield tag, value`` with an `OutputTag` sends
    `value` to that side output. All carry the timestamp ``window.max_timestamp()``.
    """

    class Context(ABC, Generic[W_co]):
        """What a firing can ask."""

        @abstractmethod
        def window(self) -> W_co:
            """The window that fires."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Processing time in ms since the epoch."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The watermark; while it is being advanced, the new one."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of the key in this window; `clear` has to clear it."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of the key in all windows."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT] | None:
        """The outputs of the window."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Called when the window is removed: clears what `window_state` holds."""


class _AppliedCallable(WindowFunction[IN, OUT, KEY, W]):
    def __init__(self, function: Callable[[KEY, W, Iterable[IN]], Iterable[OUT] | None]) -> None:
        self._function = function

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        return self._function(key, window, inputs)


class _ProcessCallable(ProcessWindowFunction[IN, OUT, KEY, W]):
    def __init__(
        self,
        function: Callable[
            [KEY, ProcessWindowFunction.Context[W], Iterable[IN]], Iterable[OUT] | None
        ],
    ) -> None:
        self._function = function

    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT] | None:
        return self._function(key, context, elements)


def apply_callable(
    function: Callable[[KEY, W, Iterable[IN]], Iterable[OUT] | None],
) -> WindowFunction[IN, OUT, KEY, W]:
    """A window function from ``function(key, window, inputs)``."""
    return _AppliedCallable(function)


def process_callable(
    function: Callable[[KEY, ProcessWindowFunction.Context[W], Iterable[IN]], Iterable[OUT] | None],
) -> ProcessWindowFunction[IN, OUT, KEY, W]:
    """A process window function from ``function(key, context, elements)``."""
    return _ProcessCallable(function)
