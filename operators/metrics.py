"""Metrics: numbers that operators and user functions keep, grouped by scope.

All of them are plain attributes of one subtask, written by its task only; a reporter reads them
between two turns of the loop. Nothing here costs more than an attribute access, and the engine
writes once per batch, never per record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from statebackends.clock import Clock


class Metric:
    """One named number."""

    __slots__ = ()

    def read(self) -> object:
        """What a reporter shows: a number, or a small dict of numbers."""
        raise NotImplementedError


class Counter(Metric):
    """A count (PyFlink: `Counter`)."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self, n: int = 1) -> None:
        """Adds `n`."""
        self.count += n

    def dec(self, n: int = 1) -> None:
        """Takes `n` off."""
        self.count -= n

    def get_count(self) -> int:
        """The count."""
        return self.count

    def read(self) -> int:
        """The count."""
        return self.count


class Gauge(Metric):
    """A value that is asked for when it is read."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def read(self) -> object:
        """What the function returns now."""
        return self.function()


class Meter(Metric):
    """Events per second over a time span (PyFlink: `Meter`).

    Events are kept as the count at the start of the span at hand and of the one before: the rate
    is that of the last one to two spans, of a longer time where nobody marked or read meanwhile.
    """

    __slots__ = ("_clock", "_marks", "_span_s", "count")

    def __init__(self, clock: Clock, time_span_in_seconds: int = 60) -> None:
        if time_span_in_seconds <= 0:
            raise ValueError(f"the time span must be positive, not {time_span_in_seconds}")
        self._clock = clock
        self._span_s = time_span_in_seconds
        self.count = 0
        now = clock.monotonic()
        self._marks = ((now, 0), (now, 0))

    def mark_event(self, value: int = 1) -> None:
        """`value` events happened now."""
        self._turn()
        self.count += value

    def get_count(self) -> int:
        """All events so far."""
        return self.count

    def rate(self) -> float:
        """Events per second."""
        self._turn()
        since, count = self._marks[0]
        elapsed = self._clock.monotonic() - since
        return (self.count - count) / elapsed if elapsed > 0 else 0.0

    def read(self) -> float:
        """Events per second."""
        return self.rate()

    def _turn(self) -> None:
        now = self._clock.monotonic()
        if now - self._marks[1][0] >= self._span_s:
            self._marks = (self._marks[1], (now, self.count))


class Distribution(Metric):
    """Sum, count, minimum, maximum and mean of the values seen (PyFlink: `Distribution`)."""

    __slots__ = ("count", "max", "min", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self.min: int | None = None
        self.max: int | None = None

    def update(self, value: int) -> None:
        """Takes in one value."""
        self.count += 1
        self.sum += value
        if self.min is None or value < self.min:
            self.min = value
        if self.max is None or value > self.max:
            self.max = value

    def read(self) -> dict[str, float | None]:
        """All five figures; minimum, maximum and mean are None before the first value."""
        mean = self.sum / self.count if self.count else None
        return {
            "count": self.count,
            "sum": self.sum,
            "min": self.min,
            "max": self.max,
            "mean": mean,
        }


M = TypeVar("M", bound=Metric)


class MetricGroup:
    """Metrics of one scope and the groups inside it (PyFlink: `MetricGroup`).

    Asking for a name a second time gives the same metric; another kind under a taken name is a
    `ValueError`.
    """

    def __init__(self, clock: Clock, scope: tuple[str, ...] = ()) -> None:
        self.scope = scope
        self._clock = clock
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[tuple[str, ...], MetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """The group `name` inside this one; with `extra` a label and its value."""
        key = (name,) if extra is None else (name, extra)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = MetricGroup(self._clock, (*self.scope, *key))
        return group

    def counter(self, name: str) -> Counter:
        """The counter of that name."""
        return self._registered(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], object]) -> None:
        """Has `obj` called whenever the metric is read; the last one of a name counts."""
        self._registered(name, Gauge, lambda: Gauge(obj)).function = obj

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """The meter of that name."""
        return self._registered(name, Meter, lambda: Meter(self._clock, time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """The distribution of that name."""
        return self._registered(name, Distribution, Distribution)

    def walk(self) -> Iterator[tuple[tuple[str, ...], Metric]]:
        """Every metric of this group and the groups inside, with scope and name."""
        for name, metric in self._metrics.items():
            yield (*self.scope, name), metric
        for group in self._groups.values():
            yield from group.walk()

    def _registered(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = make()
        if not isinstance(metric, kind):
            raise ValueError(
                f"metric {'.'.join((*self.scope, name))} is a {type(metric).__name__}, "
                f"not a {kind.__name__}"
            )
        return metric
