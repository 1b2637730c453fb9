"""Discovery and assignment, without a broker, under a simulated clock."""

from __future__ import annotations

import asyncio
import json

import pytest

from connectors.kafka.enumerator import KafkaSplitEnumerator
from connectors.kafka.errors import KafkaTopicError
from connectors.kafka.offsets import KafkaOffsetsInitializer
from connectors.kafka.source import KafkaSource
from connectors.kafka.split import SplitAssignment
from connectors.kafka.topic_partition import KafkaTopicPartition, split_owner
from runtime.clock import SimulatedClock
from statebackends.errors import CorruptCheckpointError
from tests.connectors.kafka.stand_in_broker import StandInLookup
from tests.connectors.kafka.stand_in_context import EnumeratorContext

Ends = dict[KafkaTopicPartition, tuple[int, int]]


def ends(*numbers: int, topic: str = "t") -> Ends:
    return {KafkaTopicPartition(topic, number): (number, 100 + number) for number in numbers}


class Discovery:
    """An enumerator with its stand-ins."""

    def __init__(self, found: Ends, parallelism: int = 1, **arguments: object) -> None:
        arguments.setdefault("topics", ["t"])
        source = KafkaSource(bootstrap_servers="nowhere:1", value_deserializer=bytes, **arguments)
        self.clock = SimulatedClock()
        self.context = EnumeratorContext(parallelism, clock=self.clock)
        self.kafka = StandInLookup(found)
        self.enumerator = KafkaSplitEnumerator(self.context, source.settings, lambda: self.kafka)

    def assigned(self, subtask: int = 0) -> list[SplitAssignment]:
        """What was assigned since the last call."""
        splits, self.context.assigned[subtask] = self.context.assigned[subtask], []
        return splits

    async def pass_time(self, seconds: float) -> None:
        """Lets the periodic discovery run, as far as it comes."""
        for _ in range(20):
            await asyncio.sleep(0)
        self.clock.advance_by(int(seconds * 1000))
        for _ in range(20):
            await asyncio.sleep(0)


async def test_the_first_discovery_uses_the_initializer() -> None:
    """Every partition goes to its owner, with its start."""
    discovery = Discovery(
        ends(0, 1, 2), parallelism=2, starting_offsets=KafkaOffsetsInitializer.latest()
    )
    await discovery.enumerator.start()
    for subtask in range(2):
        assert discovery.assigned(subtask) == [
            SplitAssignment(each, 100 + each.partition, None)
            for each in sorted(discovery.kafka.ends)
            if split_owner(each.topic, each.partition, 2) == subtask
        ]
    assert not discovery.context.no_more


async def test_partitions_found_later_start_at_their_beginning() -> None:
    """Whatever the initializer; known ones are not assigned again."""
    discovery = Discovery(ends(0), starting_offsets=KafkaOffsetsInitializer.latest())
    await discovery.enumerator.start()
    discovery.assigned()
    run = asyncio.ensure_future(discovery.enumerator.run())
    await discovery.pass_time(10)
    assert discovery.assigned() == []
    discovery.kafka.ends.update(ends(7))
    await discovery.pass_time(9)
    assert discovery.assigned() == []
    await discovery.pass_time(1)
    assert discovery.assigned() == [SplitAssignment(KafkaTopicPartition("t", 7), 7, None)]
    run.cancel()


async def test_after_a_restore_known_partitions_are_offered_from_their_beginning() -> None:
    """So one that was assigned too late for the checkpoint is read, and wholly; new ones too."""
    before = Discovery(ends(0, 1), starting_offsets=KafkaOffsetsInitializer.latest())
    await before.enumerator.start()
    after = Discovery(ends(0, 1, 2), starting_offsets=KafkaOffsetsInitializer.latest())
    after.enumerator.restore_state(before.enumerator.snapshot_state())
    await after.enumerator.start()
    assert [split.start_offset for split in after.assigned()] == [0, 1, 2]


async def test_after_a_restore_known_partitions_are_offered_with_their_ends() -> None:
    """Readers that have them from a run without ends need them, at whatever parallelism."""
    before = Discovery(ends(0, 1))
    await before.enumerator.start()
    after = Discovery(ends(0, 1, 2), parallelism=2, bounded=KafkaOffsetsInitializer.latest())
    after.enumerator.restore_state(before.enumerator.snapshot_state())
    await after.enumerator.start()
    offered = [split for subtask in range(2) for split in after.assigned(subtask)]
    assert sorted(split.stopping_offset or 0 for split in offered) == [100, 101, 102]
    assert after.context.no_more


async def test_a_checkpoint_before_the_first_discovery_changes_nothing() -> None:
    """The initializer still decides."""
    before = Discovery(ends(0))
    after = Discovery(ends(0), starting_offsets=KafkaOffsetsInitializer.latest())
    after.enumerator.restore_state(before.enumerator.snapshot_state())
    await after.enumerator.start()
    assert [split.start_offset for split in after.assigned()] == [100]


async def test_the_state_is_all_partitions_ever_found() -> None:
    """And whether the first discovery is done; no offsets."""
    discovery = Discovery(ends(1, 0))
    assert json.loads(discovery.enumerator.snapshot_state()) == {
        "version": 1,
        "initial_discovery_done": False,
        "partitions": [],
    }
    await discovery.enumerator.start()
    assert json.loads(discovery.enumerator.snapshot_state()) == {
        "version": 1,
        "initial_discovery_done": True,
        "partitions": [["t", 0], ["t", 1]],
    }


@pytest.mark.parametrize("state", [b"", b"{}", b'{"version": 2}', b"\xff", b"[1]"])
async def test_a_state_that_is_none_is_refused(state: bytes) -> None:
    """Also one of a later version."""
    with pytest.raises(CorruptCheckpointError):
        Discovery(ends(0)).enumerator.restore_state(state)


async def test_a_bounded_source_is_discovered_once() -> None:
    """Stopping offsets are fixed with it, and readers are told that nothing follows."""
    discovery = Discovery(ends(0, 1), bounded=KafkaOffsetsInitializer.latest())
    await discovery.enumerator.start()
    assert [split.stopping_offset for split in discovery.assigned()] == [100, 101]
    assert discovery.context.no_more
    await discovery.enumerator.run()


async def test_stopping_offsets_alone_do_not_end_a_source() -> None:
    """Of an unbounded source; discovery goes on."""
    discovery = Discovery(ends(0), unbounded=KafkaOffsetsInitializer.latest())
    await discovery.enumerator.start()
    assert [split.stopping_offset for split in discovery.assigned()] == [100]
    assert not discovery.context.no_more


async def test_discovery_can_be_switched_off() -> None:
    """By an interval of 0."""
    discovery = Discovery(ends(0), properties={"partition.discovery.interval.ms": "0"})
    await discovery.enumerator.start()
    await discovery.enumerator.run()
    assert discovery.context.failures == []


async def test_a_topic_that_stays_away_fails_the_job() -> None:
    """Not at the first look: a broker may not know all for a moment."""
    discovery = Discovery(ends(0))
    await discovery.enumerator.start()
    run = asyncio.ensure_future(discovery.enumerator.run())
    await discovery.pass_time(0)
    discovery.kafka.ends.clear()
    await discovery.pass_time(10)
    await discovery.pass_time(10)
    assert not run.done()
    await discovery.pass_time(10)
    with pytest.raises(KafkaTopicError, match="t"):
        await run


async def test_a_pattern_takes_whole_names_only() -> None:
    """And topics that come later."""
    found = ends(0, topic="clicks-1") | ends(0, topic="old-clicks-1")
    discovery = Discovery(found, topics=(), topic_pattern=r"clicks-\d")
    await discovery.enumerator.start()
    assert [split.partition.topic for split in discovery.assigned()] == ["clicks-1"]


async def test_the_client_is_closed() -> None:
    """Once, and only if it was made."""
    discovery = Discovery(ends(0))
    await discovery.enumerator.close()
    assert discovery.kafka.closed == 0
    await discovery.enumerator.start()
    await discovery.enumerator.close()
    assert (discovery.kafka.connected, discovery.kafka.closed) == (1, 1)
