"""Operators that call one user function: opening and closing it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from operator import length_hint

from operators.errors import WrongResultError
from operators.functions import Function
from operators.runtime_context import RuntimeContext
from operators.stream_operator import StreamOperator


class UserFunctionOperator(StreamOperator):
    """Owns a user function (Flink: `AbstractUdfStreamOperator`).

    While a batch is processed `_records` is the iterator over its values; which record user code
    was called with follows from what is left in it and costs nothing per record.
    """

    def __init__(self, function: object) -> None:
        self.function = function
        self._opened = False
        self._records: Iterator[object] | None = None
        self._size = 0

    def open(self) -> None:
        """Opens the user function."""
        self._opened = True
        if isinstance(self.function, Function):
            result: object = self.function.open(RuntimeContext(self.context))  # type: ignore[func-returns-value]  # an async open returns a coroutine
            if inspect.iscoroutine(result):
                result.close()
                raise WrongResultError(
                    f"{type(self.function).__name__}.open is async: "
                    "async user functions are not supported yet"
                )

    def close(self) -> None:
        """Closes the user function if it was opened."""
        if self._opened and isinstance(self.function, Function):
            self._opened = False
            self.function.close()

    def position(self) -> int | None:
        """Index in the batch at hand of the record that user code was called with last."""
        if self._records is None:
            return None
        index = self._size - length_hint(self._records) - 1
        return index if index >= 0 else None
