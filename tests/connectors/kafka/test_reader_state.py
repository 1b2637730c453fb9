"""Which positions a reader takes over from a checkpoint, without a broker."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.offsets import KafkaOffsetsInitializer
from connectors.kafka.reader import KafkaSourceReader
from connectors.kafka.source import KafkaSource
from connectors.kafka.split import SplitAssignment, SplitEntry
from connectors.kafka.topic_partition import KafkaTopicPartition, split_owner
from operators.source import InputStatus
from runtime.clock import SimulatedClock
from statebackends.descriptors import ListStateDescriptor
from statebackends.errors import CorruptCheckpointError
from statebackends.operator_state import OperatorStateBackend
from tests.connectors.kafka.stand_in_context import ReaderContext, restore


def former(entries: list[SplitEntry]) -> OperatorStateBackend:
    """The operator state of a former reader."""
    backend = OperatorStateBackend()
    state = backend.get_union_list_state(ListStateDescriptor("kafka-splits"))
    state.update([tuple(entry) for entry in entries])
    return backend


def reader(
    states: list[OperatorStateBackend],
    index: int = 0,
    parallelism: int = 1,
    topics: str = "t",
    bounded: KafkaOffsetsInitializer | None = None,
) -> tuple[KafkaSourceReader[object], ReaderContext]:
    context = ReaderContext(index, parallelism, restored=True, clock=SimulatedClock())
    restore(context, states)
    source = KafkaSource(
        bootstrap_servers="nowhere:1", topics=topics, value_deserializer=bytes, bounded=bounded
    )
    made = source.create_reader(context)
    made.initialize_state()
    assert isinstance(made, KafkaSourceReader)
    return made, context


def entries(made: KafkaSourceReader[object], context: ReaderContext) -> list[SplitEntry]:
    """What the reader puts into the next checkpoint."""
    made.snapshot_state(1)
    state = context.operator_state.get_union_list_state(ListStateDescriptor("kafka-splits"))
    return [SplitEntry(*entry) for entry in state.get()]


@given(partitions=st.integers(1, 12), before=st.integers(1, 5), after=st.integers(1, 5))
def test_every_position_goes_to_its_owner(partitions: int, before: int, after: int) -> None:
    """At any change of parallelism, each partition is in one reader's state and only there."""
    states = [
        former(
            [
                SplitEntry("t", number, number * 10, None, False)
                for number in range(partitions)
                if split_owner("t", number, before) == index
            ]
        )
        for index in range(before)
    ]
    found: Counter[SplitEntry] = Counter()
    for index in range(after):
        mine = entries(*reader(states, index, after))
        assert {split_owner(entry.topic, entry.partition, after) for entry in mine} <= {index}
        found.update(mine)
    assert found == Counter(
        SplitEntry("t", number, number * 10, None, False) for number in range(partitions)
    )


def test_finished_partitions_stay_in_the_state() -> None:
    """Else they would be read again."""
    done = SplitEntry("t", 0, 9, 9, True)
    assert entries(*reader([former([done])])) == [done]


def test_a_partition_that_is_there_twice_is_a_corrupt_checkpoint() -> None:
    """The error names it."""
    twice = [former([SplitEntry("t", 3, offset, None, False)]) for offset in (1, 2)]
    with pytest.raises(CorruptCheckpointError, match=r"t\[3\] more than once"):
        reader(twice)


def test_an_assignment_of_a_partition_in_the_state_changes_nothing() -> None:
    """The position of the checkpoint counts; one that is in no state is taken."""
    made, context = reader([former([SplitEntry("t", 0, 50, None, False)])])
    made.add_splits(
        [SplitAssignment(KafkaTopicPartition("t", number), 0, None) for number in range(2)]
    )
    assert sorted(entries(made, context)) == [
        SplitEntry("t", 0, 50, None, False),
        SplitEntry("t", 1, 0, None, False),
    ]


def test_a_partition_read_without_an_end_takes_the_one_that_is_set_now() -> None:
    """Else a source that is bounded now would never end; a position beyond it ends at once."""
    state = former([SplitEntry("t", number, 50, None, False) for number in range(3)])
    made, context = reader([state], bounded=KafkaOffsetsInitializer.latest())
    made.add_splits(
        [SplitAssignment(KafkaTopicPartition("t", n), 0, stop) for n, stop in ((0, 60), (1, 50))]
    )
    made.add_splits([SplitAssignment(KafkaTopicPartition("t", 2), 0, 40)])
    made.no_more_splits()
    assert made.poll(10) is InputStatus.NOTHING_AVAILABLE
    assert context.closed == ["t[1]", "t[2]"]
    assert sorted(entries(made, context)) == [
        SplitEntry("t", 0, 50, 60, False),
        SplitEntry("t", 1, 50, 50, True),
        SplitEntry("t", 2, 50, 40, True),
    ]


def test_a_source_ends_whose_partitions_were_read_to_their_new_ends() -> None:
    """Nothing comes any more that could end it."""
    made, context = reader(
        [former([SplitEntry("t", 0, 50, None, False)])], bounded=KafkaOffsetsInitializer.latest()
    )
    made.add_splits([SplitAssignment(KafkaTopicPartition("t", 0), 0, 50)])
    made.no_more_splits()
    assert context.woken.is_set()
    assert made.poll(10) is InputStatus.END_OF_INPUT


def test_the_end_in_the_state_outranks_the_one_that_is_set_now() -> None:
    """It was fixed when the partition was first read, and a finished one is not begun again."""
    before = [SplitEntry("t", 0, 50, 70, False), SplitEntry("t", 1, 9, 9, True)]
    made, context = reader([former(before)], bounded=KafkaOffsetsInitializer.latest())
    made.add_splits([SplitAssignment(KafkaTopicPartition("t", n), 0, 99) for n in range(2)])
    assert sorted(entries(made, context)) == before


def test_an_end_in_the_state_of_a_source_without_one_is_kept_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It names the partition: nothing behind its end is read."""
    before = [SplitEntry("t", 0, 50, 70, False), SplitEntry("t", 1, 50, None, False)]
    assert sorted(entries(*reader([former(before)]))) == before
    assert "t[0] keeps the end that it was given before: it is read up to offset 70" in caplog.text
    assert "t[1]" not in caplog.text


def test_positions_of_topics_no_longer_read_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With a warning that names them."""
    state = former([SplitEntry("t", 0, 50, None, False)])
    assert entries(*reader([state], topics="other")) == []
    assert "t[0]" in caplog.text
