"""The insides of the indexed heap: places, growth, adjustment."""

import random

import pytest

from statebackends.errors import StateError
from statebackends.heap_queue import HeapPriorityQueue
from statebackends.priority_queue import NOT_CONTAINED


class Element:
    """A priority and a place."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.internal_index = NOT_CONTAINED


def indexes_are_right(queue: HeapPriorityQueue[Element]) -> bool:
    return [element.internal_index for element in queue] == list(range(1, len(queue) + 1))


def test_every_element_knows_its_place_after_every_change() -> None:
    """Indexes follow each add, removal and adjustment, and no parent is greater than its child."""
    dice = random.Random(11)
    queue: HeapPriorityQueue[Element] = HeapPriorityQueue(capacity=2)
    elements: list[Element] = []
    for _ in range(2000):
        action = dice.random()
        if action < 0.55 or not elements:
            elements.append(Element(dice.randrange(1000)))
            queue.add(elements[-1])
        elif action < 0.8:
            queue.remove(elements.pop(dice.randrange(len(elements))))
        else:
            changed = dice.choice(elements)
            changed.priority = dice.randrange(1000)
            queue.adjust_modified_element(changed)
        assert indexes_are_right(queue)
        order = [element.priority for element in queue]
        assert all(order[(i + 1) // 2 - 1] <= order[i] for i in range(1, len(order)))


def test_a_removed_element_is_in_no_place() -> None:
    """Polled, removed and cleared elements all say that they are not contained."""
    queue: HeapPriorityQueue[Element] = HeapPriorityQueue()
    elements = [Element(n) for n in range(5)]
    queue.add_all(elements)
    queue.poll()
    queue.remove(elements[3])
    queue.clear()
    assert [e.internal_index for e in elements] == [NOT_CONTAINED] * 5
    assert len(queue) == 0


@pytest.mark.parametrize(("capacity", "lengths"), [(3, [4, 10, 22]), (70, [71, 106, 159])])
def test_grows_by_its_length_and_two_and_later_by_half(capacity: int, lengths: list[int]) -> None:
    """The array doubles while it is small and grows by half from 64 places on."""
    queue: HeapPriorityQueue[Element] = HeapPriorityQueue(capacity)
    seen: list[int] = []
    while len(seen) < len(lengths):
        length = len(vars(queue)["_array"])
        if length not in seen:
            seen.append(length)
        queue.add(Element(0))
    assert seen == lengths


def test_adjusting_an_element_of_elsewhere_is_refused() -> None:
    """An element that is in no heap, or in another, has no place here to move from."""
    queue: HeapPriorityQueue[Element] = HeapPriorityQueue()
    other: HeapPriorityQueue[Element] = HeapPriorityQueue()
    element = Element(1)
    other.add(element)
    queue.add(Element(1))
    with pytest.raises(StateError):
        queue.adjust_modified_element(element)
