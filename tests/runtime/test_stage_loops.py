"""Loops that call functions, and loops that have their expressions instead, do the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from runtime.stage_loops import StageLoops, calling, in_place

OFFSET = 5
limit = 1000
out = v = records = times = 30
"""The names that the loop has for its own variables."""


def replaced(functions: Sequence[Callable[[Any], object]], filters: Sequence[bool]) -> StageLoops:
    loops = in_place(functions, filters)
    assert loops is not None, "the functions are called"
    return loops


@pytest.mark.parametrize("kind", [calling, replaced])
def test_maps_and_a_filter(kind: Callable[..., StageLoops]) -> None:
    """Records and their timestamps."""
    functions: list[Callable[[Any], object]] = [
        lambda value: value * 2,
        lambda doubled: doubled % 4,
        lambda value: value + out + v + records + times,
    ]
    loops = kind(functions, [False, True, False])
    assert loops.untimed([1, 2, 3]) == [122, 126]
    assert loops.timed([(1, 10), (2, None), (3, 30)]) == ([122, 126], [10, 30])


@pytest.mark.parametrize("kind", [calling, replaced])
def test_names_are_looked_up_when_they_are_used(
    kind: Callable[..., StageLoops], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Global ones and captured ones, as a call does."""
    captured = 1

    def change() -> None:
        nonlocal captured
        captured = 100

    loops = kind([lambda value: value + OFFSET, lambda value: value + captured], [False, False])
    assert loops.untimed([1]) == [7]
    monkeypatch.setattr(sys.modules[__name__], "OFFSET", 6)
    change()
    assert loops.untimed([1]) == [107]


def _below(limit: int) -> Callable[[int], bool]:
    return lambda value: value < limit


@pytest.mark.parametrize(
    "functions",
    [
        (_below(3), _below(5)),
        (_below(3), lambda value: value < limit),
        (lambda value: value < limit, _below(3)),
        (lambda limit: limit, lambda value: value < limit),
        (lambda value: value, str),
        (lambda value: value, _below),
    ],
    ids=[
        "two captured",
        "captured, global",
        "global, captured",
        "parameter, global",
        "not Python",
        "another function",
    ],
)
def test_where_a_name_would_mean_two_things_functions_are_called(
    functions: Sequence[Callable[[Any], object]],
) -> None:
    """So they are if one of them has no expression."""
    assert in_place(functions, [False, False]) is None


def test_a_function_in_two_places_is_called() -> None:
    """By its place in the file it could not be told which of the two has failed."""
    function = _below(3)
    assert in_place([function, function], [False, False]) is None


@pytest.mark.parametrize("kind", [calling, replaced])
def test_each_instruction_has_its_stage(kind: Callable[..., StageLoops]) -> None:
    """Also where the functions stand on one line."""
    seen: list[int | None] = []

    def look(value: int) -> int:
        frame = sys._getframe(1)
        while loops.stage_at(frame.f_code, frame.f_lasti) is None:
            assert frame.f_back is not None, "no frame is of the loop"
            frame = frame.f_back
        seen.append(loops.stage_at(frame.f_code, frame.f_lasti))
        return value

    a, b, c = (lambda value: look(value + 1), lambda _: look(2), lambda value: 1 + look(value))
    loops = kind([a, b, c], [False, True, False])
    loops.untimed([1])
    loops.timed([(1, None)])
    assert seen == [0, 1, 2] * 2


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_has_its_line(failing: int) -> None:
    """The traceback shows the expression where it stands, under the function's name."""
    functions: list[Callable[[Any], object]] = [
        lambda value: value.first,
        lambda value: value.second,
        lambda value: value.third,
    ]
    loops = replaced(functions, [False, False, False])
    chain = Attributed(None)
    for name in ("third", "second", "first")[2 - failing + 1 :]:
        chain = Attributed(**{name: chain})
    with pytest.raises(AttributeError) as raised:
        loops.untimed([chain])
    frame = raised.traceback[-1]
    assert frame.lineno + 1 == functions[failing].__code__.co_firstlineno
    assert (frame.name, str(frame.path)) == ("<lambda>", __file__)
    assert loops.stage_at(frame.frame.code.raw, raised.tb.tb_next.tb_lasti) == failing


class Attributed:
    """An object with the attributes it was given."""

    def __init__(self, *_: object, **attributes: object) -> None:
        self.__dict__.update(attributes)


def test_variables_have_the_names_of_the_parameters() -> None:
    """For debuggers, and for libraries that look into the frame that calls them."""
    frames: list[dict[str, object]] = []

    def look(value: int) -> int:
        frames.append(dict(sys._getframe(1).f_locals))
        return value

    loops = replaced(
        [lambda first: first + 1, lambda other: other > 0, lambda last: look(last) + limit],
        [False, True, False],
    )
    assert loops.untimed([1]) == [1002]
    assert {name: value for name, value in frames[0].items() if name.isidentifier()} == {
        "first": 1,
        "other": 2,
        "last": 2,
        "look": look,
    }
    assert list(loops.variables) == ["first", "other", "last"]
