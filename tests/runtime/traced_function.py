"""A function with a context variable, as libraries for tracing have one."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, ClassVar

from operators.functions import MapFunction

SPAN: ContextVar[str] = ContextVar("span", default="nothing")


class Traced(MapFunction[Any, str]):
    """Gives the value of the variable, which `open` sets; resets it at a record or in `close`."""

    at_close: ClassVar[list[str]] = []
    """The values after each `close`."""

    def __init__(self, reset_at: int | None = None) -> None:
        self._reset_at = reset_at
        self._token: Token[str] | None = None

    def open(self, runtime_context: Any) -> None:
        self._token = SPAN.set("opened")

    def map(self, value: int) -> str:
        if value == self._reset_at:
            self._reset()
        return SPAN.get()

    def close(self) -> None:
        self._reset()
        self.at_close.append(SPAN.get())

    def _reset(self) -> None:
        if self._token is not None:
            SPAN.reset(self._token)
            self._token = None
