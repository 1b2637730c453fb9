"""What is particular to the timer queue made of buckets: order, memory, effort."""

from statebackends.bucket_queue import BucketTimerQueue


def leftovers(queue: BucketTimerQueue) -> tuple[int, int]:
    """Buckets and heap entries that the queue still holds."""
    inside = vars(queue)
    return len(inside["_buckets"]), len(inside["_timestamps"])


def test_nothing_is_left_of_timers_that_fired() -> None:
    """Polled timers leave neither buckets nor heap entries."""
    queue = BucketTimerQueue()
    for timestamp in range(1000):
        queue.add(timestamp, "k", None)
        queue.add_all(timestamp, ["a", "b"], "w")
    while queue.poll_group(500, 2) is not None or queue.poll(999) is not None:
        pass
    assert leftovers(queue) == (0, 0)


def test_timers_registered_and_deleted_for_ever_do_not_pile_up() -> None:
    """With lazy deletion the heap stays within a fixed multiple of what is there."""
    queue = BucketTimerQueue()
    queue.add(0, "head", None)
    most = 0
    for timestamp in range(1, 20_000):
        queue.add(timestamp, "k", None)
        queue.remove(timestamp, "k", None)
        most = max(most, leftovers(queue)[1])
    assert leftovers(queue)[0] == 1
    assert most < 100


def test_small_groups_come_in_the_order_of_registration() -> None:
    """Timers of one time fire first in, first out while they are few."""
    queue = BucketTimerQueue()
    names = ["c", "a", "b", "d"]
    for name in names:
        queue.add(7, name, None)
    first = queue.poll(7)
    assert first is not None
    group = queue.poll_group(7, 100)
    assert group is not None
    assert [first.key, *group.keys] == names


def test_a_large_group_is_taken_in_pieces_without_loss() -> None:
    """Pieces of a large group are of the size asked for, and together they are the group."""
    queue = BucketTimerQueue()
    queue.add_all(1, range(100_000), "w")
    sizes = []
    seen: set[object] = set()
    while (group := queue.poll_group(1, 1000)) is not None:
        sizes.append(len(group.keys))
        seen.update(group.keys)
    assert sizes == [1000] * 100
    assert seen == set(range(100_000))


def test_a_time_with_many_namespaces_is_emptied_in_linear_effort() -> None:
    """A hundred thousand windows that end together do not slow each other down."""
    queue = BucketTimerQueue()
    for namespace in range(100_000):
        queue.add(1, "k", namespace)
    polled = 0
    while queue.poll(1) is not None:
        polled += 1
    assert polled == 100_000
    assert leftovers(queue) == (0, 0)


def test_a_removed_timer_is_not_taken_with_its_group() -> None:
    """Deleting is exact in tables of any size and for a lone timer."""
    queue = BucketTimerQueue()
    queue.add_all(1, ["a", "b", "c"], "w")
    queue.remove(1, "b", "w")
    queue.add(2, "lone", None)
    queue.remove(2, "other", None)
    group = queue.poll_group(1, 10)
    assert group is not None
    assert group.keys == ["a", "c"]
    assert len(queue) == 1
