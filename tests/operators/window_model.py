"""What windows mean, in the simplest words: the model that both ways are held against."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from operators.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from operators.triggers import EventTimeTrigger


class SameTrigger(EventTimeTrigger):
    """The default trigger under another name: makes the operator go record by record."""


@dataclass
class WindowModel:
    """Event-time windows under the default trigger; contents are the values in their order."""

    size: int
    slide: int
    offset: int
    lateness: int
    watermark: int = MIN_TIMESTAMP
    late: int = 0
    contents: dict[tuple[Hashable, int], list[Any]] = field(default_factory=dict)
    waiting: set[tuple[Hashable, int]] = field(default_factory=set)

    def removal(self, start: int) -> int:
        return min(start + self.size - 1 + self.lateness, MAX_TIMESTAMP)

    def record(self, key: Hashable, value: Any, timestamp: int) -> list[Any]:
        outputs: list[Any] = []
        dropped = True
        start = timestamp - (timestamp - self.offset) % self.slide
        while start > timestamp - self.size:
            if self.removal(start) > self.watermark:
                dropped = False
                self.contents.setdefault((key, start), []).append(value)
                if start + self.size - 1 <= self.watermark:
                    outputs.append(self.fire(key, start))
                else:
                    self.waiting.add((key, start))
            start -= self.slide
        if dropped and timestamp + self.lateness <= self.watermark:
            self.late += 1
            outputs.append(("late", value, timestamp))
        return outputs

    def fire(self, key: Hashable, start: int) -> Any:
        values = tuple(self.contents[key, start])
        return ((key, start, values), start + self.size - 1)

    def advance(self, watermark: int) -> list[Any]:
        self.watermark = watermark
        due = [one for one in self.waiting if one[1] + self.size - 1 <= watermark]
        outputs = [self.fire(*one) for one in sorted(due, key=lambda one: one[1])]
        self.waiting.difference_update(due)
        for one in [one for one in self.contents if self.removal(one[1]) <= watermark]:
            del self.contents[one]
        return outputs

    def restart(self) -> None:
        self.watermark = MIN_TIMESTAMP
