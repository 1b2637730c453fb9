"""The contract of the ordered queues, for each of them (Flink: InternalPriorityQueueTestBase)."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from statebackends.heap_queue import HeapPriorityQueue, HeapPriorityQueueSet
from statebackends.keygroup_queue import KeyGroupPartitionedPriorityQueue
from statebackends.keygroups import KeyGroupRange
from statebackends.priority_queue import NOT_CONTAINED, InternalPriorityQueue

KEY_GROUPS = KeyGroupRange(0, 2)


class Element:
    """Equal by key and priority, ordered by priority."""

    def __init__(self, key: int, priority: int) -> None:
        self.key = key
        self.priority = priority
        self.internal_index = NOT_CONTAINED

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"Element{self.identity}"

    @property
    def identity(self) -> tuple[int, int]:
        return self.key, self.priority

    def copy(self) -> "Element":
        return Element(self.key, self.priority)


Queue = InternalPriorityQueue[Element]


def key_group_of(element: Element) -> int:
    return element.key % len(KEY_GROUPS)


def plain_heap() -> Queue:
    return HeapPriorityQueue(capacity=4)


def heap_set() -> Queue:
    return HeapPriorityQueueSet(key_group_of, KEY_GROUPS, capacity=4)


def partitioned() -> Queue:
    return KeyGroupPartitionedPriorityQueue(
        key_group_of,
        KEY_GROUPS,
        lambda group: HeapPriorityQueueSet(key_group_of, KeyGroupRange(group, group), capacity=4),
    )


SETS = [heap_set, partitioned]


@pytest.fixture(params=[plain_heap, *SETS])
def queue(request: pytest.FixtureRequest) -> Queue:
    made: Queue = request.param()
    return made


@pytest.fixture(params=SETS)
def set_queue(request: pytest.FixtureRequest) -> Queue:
    made: Queue = request.param()
    return made


def fill(queue: Queue, count: int, dice: random.Random) -> list[Element]:
    """Adds distinct elements, one in ten with the priority before, and checks what add returns."""
    elements: list[Element] = []
    present: set[Element] = set()
    priority = 0
    while len(elements) < count:
        if dice.random() >= 0.1:
            priority = dice.randrange(-(2**40), 2**40)
        element = Element(dice.randrange(max(count // 4, 64)), priority)
        if element in present:
            continue
        present.add(element)
        elements.append(element)
        assert queue.add(element) is (queue.peek() is element)
    return elements


def drain(queue: Queue) -> list[Element]:
    polled: list[Element] = []
    while (element := queue.poll()) is not None:
        polled.append(element)
    return polled


def test_polls_in_the_order_of_priority_whatever_the_order_of_adding(queue: Queue) -> None:
    """A thousand random elements come out each once, never falling, the head being shown first."""
    added = fill(queue, 1000, random.Random(1))
    assert len(queue) == 1000
    polled: list[Element] = []
    while (head := queue.peek()) is not None:
        assert queue.poll() is head
        polled.append(head)
        assert len(queue) == 1000 - len(polled)
    assert [e.priority for e in polled] == sorted(e.priority for e in added)
    assert Counter(polled) == Counter(added)


def test_stays_ordered_while_elements_are_removed_polled_and_added(queue: Queue) -> None:
    """A random mix of changes keeps the least element at the head, and says when it changed."""
    dice = random.Random(2)
    present = fill(queue, 300, dice)
    while present:
        victim = dice.choice(present)
        head = queue.peek()
        assert queue.remove(victim) is (victim is head)
        present.remove(victim)
        if dice.random() < 0.2:
            for _ in range(dice.randrange(4)):
                if (polled := queue.poll()) is not None:
                    assert polled.priority == min(e.priority for e in present)
                    present.remove(polled)
            for _ in range(dice.randrange(1, 3)):
                added = Element(1000 + dice.randrange(10**6), dice.randrange(2**40))
                queue.add(added)
                present.append(added)
        assert len(queue) == len(present)
        head = queue.peek()
        assert (head.priority if head else None) == min((e.priority for e in present), default=None)
    assert queue.is_empty()


def test_add_all_takes_back_what_was_polled(queue: Queue) -> None:
    """Elements that went out can come in again at once."""
    fill(queue, 30, random.Random(3))
    polled = drain(queue)
    queue.add_all(polled)
    assert Counter(drain(queue)) == Counter(polled)


def test_an_empty_queue_has_no_head(queue: Queue) -> None:
    """Peek and poll of nothing give None, before the first element and after the last."""
    assert (queue.peek(), queue.poll()) == (None, None)
    fill(queue, 345, random.Random(4))
    assert len(drain(queue)) == 345
    assert (queue.peek(), queue.poll(), len(queue)) == (None, None, 0)


def test_is_empty_follows_adding_and_polling(queue: Queue) -> None:
    """The queue is empty exactly when it has no element."""
    seen = [queue.is_empty()]
    queue.add(Element(4711, 42))
    seen.append(queue.is_empty())
    queue.poll()
    seen.append(queue.is_empty())
    assert seen == [True, False, True]


@pytest.mark.parametrize(("make", "copies"), [(plain_heap, 3), (heap_set, 1), (partitioned, 1)])
def test_equal_elements_count_once_in_a_set(make: Callable[[], Queue], copies: int) -> None:
    """Of three equal elements a set keeps the first, a plain heap all."""
    queue = make()
    elements = [Element(key, key // 2) for key in range(20)]
    queue.add_all([each for element in elements for each in (element, element.copy())])
    queue.add_all([e.copy() for e in elements])
    assert Counter(e.identity for e in queue) == Counter({e.identity: copies for e in elements})
    assert len(queue) == copies * len(elements)


def test_iterates_over_each_element_once(queue: Queue) -> None:
    """Iteration of an empty queue ends at once, else it shows every element."""
    assert list(queue) == []
    added = fill(queue, 50, random.Random(5))
    assert Counter(queue) == Counter(added)


def test_add_says_whether_the_head_changed(queue: Queue) -> None:
    """True for a new minimum only."""
    changed = [queue.add(Element(key, priority)) for key, priority in enumerate([10, 12, 8, 9])]
    assert changed == [True, False, True, False]


def test_adding_an_equal_element_changes_nothing(set_queue: Queue) -> None:
    """The second of two equal elements is dropped, though it equals the head."""
    first = Element(1, 5)
    set_queue.add(first)
    assert set_queue.add(Element(1, 5)) is False
    assert set_queue.peek() is first
    assert len(set_queue) == 1


def test_removing_an_equal_element_removes_the_one_that_is_there(set_queue: Queue) -> None:
    """What is equal stands for what was added; removing it again finds nothing."""
    set_queue.add(Element(1, 5))
    assert set_queue.remove(Element(1, 5)) is True
    assert set_queue.remove(Element(1, 5)) is False
    assert set_queue.is_empty()


def test_removing_what_was_never_added_changes_nothing(queue: Queue) -> None:
    """An absent element is not an error, with other elements there or not."""
    assert queue.remove(Element(0, 0)) is False
    queue.add(Element(1, 1))
    assert queue.remove(Element(0, 0)) is False
    assert len(queue) == 1


@pytest.mark.parametrize("make", SETS)
def test_shows_the_elements_of_one_key_group(make: Callable[[], Queue]) -> None:
    """The subset of a key group has its elements and no others, also after some were polled."""
    queue = make()
    assert isinstance(queue, HeapPriorityQueueSet | KeyGroupPartitionedPriorityQueue)
    fill(queue, 100, random.Random(6))
    for _ in range(30):
        queue.poll()
    rest = list(queue)
    for group in KEY_GROUPS:
        expected = Counter(e for e in rest if key_group_of(e) == group)
        assert Counter(queue.subset_for_key_group(group)) == expected


@pytest.mark.parametrize("make", SETS)
def test_empty_key_groups_are_not_kept(make: Callable[[], Queue]) -> None:
    """A key group counts from its first element to its last."""
    queue = make()
    assert isinstance(queue, HeapPriorityQueueSet | KeyGroupPartitionedPriorityQueue)
    queue.add_all([Element(2, 9), Element(0, 1)])
    before = queue.key_groups()
    queue.poll()
    assert (before, queue.key_groups()) == ([0, 2], [2])
    queue.remove(Element(2, 9))
    assert queue.key_groups() == []
    assert list(queue.subset_for_key_group(2)) == []


@pytest.mark.parametrize("make", SETS)
def test_refuses_elements_of_foreign_key_groups(make: Callable[[], Queue]) -> None:
    """An element outside the range is a fault of the caller, and is said so."""
    made = make()
    vars(made)["_key_group_range"] = KeyGroupRange(1, 1)
    with pytest.raises(Exception, match="key group 2"):
        made.add(Element(2, 0))


def test_partitioned_head_moves_to_the_group_with_the_least_element() -> None:
    """The head of the whole is the least of the groups' heads after every change."""
    queue = partitioned()
    for key, priority in [(0, 30), (1, 20), (2, 10)]:
        assert queue.add(Element(key, priority)) is True
    assert queue.add(Element(1, 15)) is False
    assert queue.remove(Element(2, 10)) is True
    head = queue.peek()
    assert head is not None
    assert head.identity == (1, 15)
