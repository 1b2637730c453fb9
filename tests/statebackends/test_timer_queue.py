"""The contract of timer queues, for each of them, against a plain set of timers."""

from collections.abc import Callable, Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from benchmarks.lazy_heap_queue import LazyHeapTimerQueue
from statebackends.bucket_queue import BucketTimerQueue
from statebackends.heap_timer_queue import HeapTimerQueue
from statebackends.keygroups import KeyGroupRange
from statebackends.timer_queue import Timer, TimerQueue

KEY_GROUPS = KeyGroupRange(0, 3)


def key_group_of(key: Hashable) -> int:
    return sum(str(key).encode()) % len(KEY_GROUPS)


MAKERS: dict[str, Callable[[], TimerQueue]] = {
    "buckets": BucketTimerQueue,
    "heap": lambda: HeapTimerQueue.heap(key_group_of, KEY_GROUPS),
    "partitioned": lambda: HeapTimerQueue.partitioned(key_group_of, KEY_GROUPS),
    "lazy heap": LazyHeapTimerQueue,
}

timestamps = st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1)
keys = st.sampled_from(["a", "b", "c", 1, 2, None, (1, "x")])
namespaces = st.sampled_from([None, (0, 10), (10, 20)])
FOREVER = 2**63 - 1


@pytest.fixture(params=MAKERS)
def queue(request: pytest.FixtureRequest) -> TimerQueue:
    return MAKERS[request.param]()


class AgainstASet(RuleBasedStateMachine):
    """Does to a queue and to a set of timers the same, and compares after every step."""

    @initialize(name=st.sampled_from(list(MAKERS)))
    def make(self, name: str) -> None:
        self.queue = MAKERS[name]()
        self.model: set[Timer] = set()

    def earliest(self) -> int | None:
        return min((timer.timestamp for timer in self.model), default=None)

    @rule(timestamp=timestamps, key=keys, namespace=namespaces)
    def add(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        before = self.earliest()
        self.model.add(Timer(timestamp, key, namespace))
        assert self.queue.add(timestamp, key, namespace) is (before != self.earliest())

    @rule(timestamp=timestamps, added=st.lists(keys), namespace=namespaces)
    def add_all(self, timestamp: int, added: list[Hashable], namespace: Hashable) -> None:
        before = self.earliest()
        self.model.update(Timer(timestamp, key, namespace) for key in added)
        assert self.queue.add_all(timestamp, added, namespace) is (before != self.earliest())

    @rule(timestamp=timestamps, key=keys, namespace=namespaces)
    def remove(self, timestamp: int, key: Hashable, namespace: Hashable) -> None:
        before = self.earliest()
        self.model.discard(Timer(timestamp, key, namespace))
        assert self.queue.remove(timestamp, key, namespace) is (before != self.earliest())

    @rule(data=st.data())
    def remove_present(self, data: st.DataObject) -> None:
        if self.model:
            self.remove(*data.draw(st.sampled_from(sorted(self.model, key=repr))))

    @rule(limit=timestamps)
    def poll(self, limit: int) -> None:
        polled = self.queue.poll(limit)
        earliest = self.earliest()
        if earliest is None or earliest > limit:
            assert polled is None
        else:
            assert polled is not None
            assert polled.timestamp == earliest
            self.model.remove(polled)

    @rule(limit=timestamps, keys_max=st.integers(1, 5))
    def poll_group(self, limit: int, keys_max: int) -> None:
        group = self.queue.poll_group(limit, keys_max)
        earliest = self.earliest()
        if earliest is None or earliest > limit:
            assert group is None
        else:
            assert group is not None
            assert group.timestamp == earliest
            assert 1 <= len(group.keys) <= keys_max
            for key in group.keys:
                self.model.remove(Timer(group.timestamp, key, group.namespace))

    @invariant()
    def same_timers(self) -> None:
        if not hasattr(self, "queue"):
            return
        timers = list(self.queue)
        assert len(timers) == len(self.model) == len(self.queue)
        assert set(timers) == self.model
        assert self.queue.earliest() == self.earliest()


AgainstASet.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAgainstASet = AgainstASet.TestCase


@given(st.lists(st.tuples(timestamps, keys, namespaces)), st.sampled_from(list(MAKERS)))
@settings(deadline=None)
def test_polling_everything_gives_each_timer_once_in_the_order_of_time(
    added: list[tuple[int, Hashable, Hashable]], name: str
) -> None:
    """Whatever is added, polling to the end gives the distinct timers by time."""
    queue = MAKERS[name]()
    for timestamp, key, namespace in added:
        queue.add(timestamp, key, namespace)
    polled: list[Timer] = []
    while (timer := queue.poll(FOREVER)) is not None:
        polled.append(timer)
    assert [timer.timestamp for timer in polled] == sorted(t for t, _, _ in set(added))
    assert set(polled) == {Timer(*timer) for timer in added}


def test_a_timer_beyond_the_limit_stays(queue: TimerQueue) -> None:
    """The limit is the last time that is due, and what lies beyond is left alone."""
    queue.add(10, "a", None)
    assert queue.poll(9) is None
    assert queue.poll_group(9, 100) is None
    assert queue.poll(10) == Timer(10, "a", None)


def test_a_group_shares_time_and_namespace(queue: TimerQueue) -> None:
    """Timers of one time in two namespaces come in two groups."""
    queue.add_all(5, ["a", "b"], "w1")
    queue.add_all(5, ["c"], "w2")
    groups = []
    while (group := queue.poll_group(5, 100)) is not None:
        groups += [(group.timestamp, group.namespace, key) for key in group.keys]
    assert sorted(groups) == [(5, "w1", "a"), (5, "w1", "b"), (5, "w2", "c")]


def test_a_timer_registered_while_its_time_is_being_polled_is_polled_too(queue: TimerQueue) -> None:
    """A callback that registers for the time at hand gets its timer in the same round."""
    queue.add_all(5, range(10), "w")
    first = queue.poll_group(5, 4)
    assert first is not None
    queue.add(5, "late", "w")
    rest: list[Hashable] = []
    while (group := queue.poll_group(5, 4)) is not None:
        rest += group.keys
    assert sorted([*first.keys, *rest], key=str) == [*range(10), "late"]


def test_a_timer_added_again_after_it_was_polled_counts_anew(queue: TimerQueue) -> None:
    """Sets forget what went out."""
    queue.add(5, "a", None)
    queue.poll(5)
    assert queue.add(5, "a", None) is True
    assert len(queue) == 1
