"""The name of a side output."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Self, final

from typing_extensions import TypeVar

T = TypeVar("T", default=Any)


@final
class OutputTag(Generic[T]):
    """Names a side output; tags with equal ids are equal (PyFlink: `OutputTag`).

    A process function sends to it with ``yield tag, value``; `DataStream.get_side_output(tag)`
    is the stream of what was sent. `type_info` is a hint only; a type checker takes what is sent
    from an annotation (`LATE: OutputTag[Click] = OutputTag("late")`), else it may be anything.
    """

    __slots__ = ("tag_id", "type_info")

    in_use: ClassVar[bool] = False
    """True once there was a tag in this process: before, no output needs to be looked at."""

    def __new__(cls, *_: object, **__: object) -> Self:
        """Notes that there are tags, copied and unpickled ones as well."""
        OutputTag.in_use = True
        return super().__new__(cls)

    def __init__(self, tag_id: str, type_info: object = None) -> None:
        if not isinstance(tag_id, str):
            raise TypeError(f"an output tag's id is a str, not {type(tag_id).__name__}: {tag_id!r}")
        if not tag_id:
            raise ValueError("an output tag's id must not be empty")
        self.tag_id = tag_id
        self.type_info = type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
