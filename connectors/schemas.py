"""What turns bytes into values and back, for all connectors (PyFlink: `pyflink.common`).

Wherever a schema is taken, a plain callable does as well.
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class DeserializationSchema(ABC, Generic[T_co]):
    """Makes values of bytes (PyFlink: `DeserializationSchema`)."""

    def open(self) -> None:
        """Prepares the schema; called once for each subtask before the first value."""

    @abstractmethod
    def deserialize(self, message: bytes) -> T_co:
        """The value of the bytes; raises whatever says best why there is none."""


class SerializationSchema(ABC, Generic[T_contra]):
    """Makes bytes of values (PyFlink: `SerializationSchema`)."""

    def open(self) -> None:
        """Prepares the schema; called once for each subtask before the first value."""

    @abstractmethod
    def serialize(self, element: T_contra) -> bytes | None:
        """The bytes of the value; None stands for no bytes at all (Kafka: a tombstone)."""


class SimpleStringSchema(DeserializationSchema[str], SerializationSchema[str]):
    """Text in one encoding (PyFlink: `SimpleStringSchema`)."""

    def __init__(self, charset: str = "UTF-8") -> None:
        "".encode(charset)
        self._charset = charset

    def deserialize(self, message: bytes) -> str:
        """The text; raises `UnicodeDecodeError` for bytes of another encoding."""
        return message.decode(self._charset)

    def serialize(self, element: str) -> bytes:
        """The bytes; raises `TypeError` for anything but a str."""
        if not isinstance(element, str):
            raise TypeError(f"SimpleStringSchema takes str, not {type(element).__name__}")
        return element.encode(self._charset)


class ByteArraySchema(DeserializationSchema[bytes], SerializationSchema[bytes]):
    """Bytes as they are (PyFlink: `ByteArraySchema`)."""

    def deserialize(self, message: bytes) -> bytes:
        """The bytes given."""
        return message

    def serialize(self, element: bytes) -> bytes:
        """The bytes given; raises `TypeError` for anything else."""
        if not isinstance(element, (bytes, bytearray, memoryview)):
            raise TypeError(f"ByteArraySchema takes bytes, not {type(element).__name__}")
        return bytes(element)


def check_plain(function: object, what: str) -> None:
    """Raises `TypeError` for an async function, whose results nobody would await."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{what} is called with def, not async def: {function!r:.80}")


_scan_json = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # missing in typeshed


def parse_json(data: bytes) -> Any:
    """What `json.loads` gives or raises, for the common case in less than half of its time.

    Most of `json.loads` goes into finding out the encoding and into spaces around the document;
    what is not one UTF-8 document without such spaces is left to it.
    """
    try:
        text = data.decode()
        document, end = _scan_json(text, 0)
        if end == len(text):
            return document
    except (ValueError, StopIteration):
        return json.loads(data)
    return json.loads(data)


class JsonSchema(DeserializationSchema[Any], SerializationSchema[Any]):
    """JSON documents in UTF-8, without spaces."""

    def deserialize(self, message: bytes) -> Any:
        """The document as dicts, lists and scalars; raises `ValueError` for anything else."""
        return parse_json(message)

    def serialize(self, element: object) -> bytes:
        """The document; raises `TypeError` for what JSON has no form for."""
        return json.dumps(element, separators=(",", ":"), ensure_ascii=False).encode()
