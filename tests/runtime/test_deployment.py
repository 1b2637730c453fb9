"""Tasks and channels made from a plan: how many, between whom, and with which state."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Coroutine
from typing import Any

import pytest

from operators.builtin import CollectSink
from operators.elements import RecordBatch
from operators.graph import StreamGraph
from operators.output_tag import OutputTag
from runtime.chain import ChainNode
from runtime.checkpoint_messages import AttemptId, SubtaskId
from runtime.clock import SystemClock
from runtime.deployment import Deployment, DeploymentSettings, RestoredOperators, deploy
from runtime.exchange import BroadcastWriter, ForwardWriter, KeyGroupWriter, RebalanceWriter
from runtime.plan import build_plan
from runtime.turn import LoopTurn
from statebackends.descriptors import ListStateDescriptor, ValueStateDescriptor
from statebackends.errors import StateError
from statebackends.heap import HeapKeyedStateBackend
from statebackends.keygroups import KeyGroupRange, key_group_of, key_group_range
from statebackends.keys import encode_key
from statebackends.operator_state import OperatorStateBackend, RestoredOperatorState
from statebackends.snapshot import RestoredKeyedState, SnapshotFile, SnapshotFileWriter
from statebackends.storage import InMemoryCheckpointStorage
from tests.operators.graph_owner import graph, source
from tests.runtime.chain_parts import taken

MAX_PARALLELISM = 8
COUNTS: ValueStateDescriptor[Any] = ValueStateDescriptor("counts")
OFFSETS: ListStateDescriptor[Any] = ListStateDescriptor("offsets")


class Listener:
    """Fits `AttemptListener`; nothing runs here."""

    def finished(self, task: Any) -> None:
        return None

    def checkpoint_declined(self, task: Any, checkpoint_id: int, reason: str) -> None:
        return None

    def replies(self, subtask: SubtaskId) -> Any:
        return None


def spawn(coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
    raise AssertionError("nothing runs yet")


def deployed(
    of: StreamGraph,
    parallelism: int = 2,
    *,
    restored: RestoredOperators | None = None,
    chaining: bool = False,
    **options: Any,
) -> Deployment:
    plan = build_plan(
        of, parallelism=parallelism, max_parallelism=MAX_PARALLELISM, chaining=chaining
    )
    settings = DeploymentSettings(
        job_name="job",
        attempt=AttemptId(3, 2),
        clock=SystemClock(),
        turn=LoopTurn(asyncio.get_running_loop(), lambda: 0.0),
        backend=HeapKeyedStateBackend,
        spawn=spawn,
        **options,
    )
    return deploy(plan, settings, Listener(), restored)


def pair(how: str, target_parallelism: int | None = None) -> StreamGraph:
    """Source -> (how) -> map -> sink."""
    made = graph()
    stream: Any = source(made, name="numbers")
    if how == "key_by":
        applied = stream.key_by(lambda value: value).reduce(lambda a, b: a + b)
    else:
        stream = stream if how == "forward" else getattr(stream, how)()
        applied = stream.map(lambda value: value)
    mapped = applied.name("target").uid("target")
    if target_parallelism is not None:
        mapped.set_parallelism(target_parallelism)
    mapped.sink_to(CollectSink()).set_parallelism(1)
    return made


def addresses(deployment: Deployment, vertex: int, index: int) -> list[tuple[int, str, int]]:
    """Input, sender and sender's subtask of each channel into a subtask."""
    gate = deployment.tasks[SubtaskId(vertex, index)]._gate
    assert gate is not None
    return [(each.input_index, each.upstream, each.upstream_subtask) for each in gate.channels]


def node_of(deployment: Deployment, vertex: int, index: int) -> ChainNode:
    return deployment.tasks[SubtaskId(vertex, index)].head


# -- channels ------------------------------------------------------------


async def test_there_is_a_task_for_each_subtask_of_each_vertex() -> None:
    """Addressed by vertex and index, named for people from 1."""
    made = deployed(pair("rebalance", 3))
    assert sorted(made.tasks) == [
        SubtaskId(1, 0),
        SubtaskId(1, 1),
        SubtaskId(2, 0),
        SubtaskId(2, 1),
        SubtaskId(2, 2),
        SubtaskId(3, 0),
    ]
    assert made.tasks[SubtaskId(2, 1)].name == "target (2/3)"


@pytest.mark.parametrize(
    ("how", "receivers", "kind"),
    [
        ("rebalance", 3, RebalanceWriter),
        ("broadcast", 3, BroadcastWriter),
        ("key_by", 3, KeyGroupWriter),
        ("forward", 2, ForwardWriter),
        ("forward", 3, RebalanceWriter),
    ],
)
async def test_each_partitioning_has_its_channels(how: str, receivers: int, kind: type) -> None:
    """Forward joins equal indices, everything else each sender with each receiver."""
    made = deployed(pair(how, receivers), parallelism=2)
    for sender in range(2):
        (writer,) = node_of(made, 1, sender).main.writers
        assert type(writer) is kind
        assert len(writer.channels) == (1 if kind is ForwardWriter else receivers)
    for receiver in range(receivers):
        senders = [sender for _, _, sender in addresses(made, 2, receiver)]
        assert senders == ([receiver] if kind is ForwardWriter else [0, 1])


async def test_rebalancing_senders_begin_at_different_receivers() -> None:
    """Else all of a trickle would go to the first one."""
    made = deployed(pair("rebalance", 2))
    for sender in range(2):
        (writer,) = node_of(made, 1, sender).main.writers
        writer.emit(RecordBatch([sender]))
    for receiver in range(2):
        gate = made.tasks[SubtaskId(2, receiver)]._gate
        assert gate is not None
        assert [taken(channel) for channel in gate.channels if channel.queue] == [[receiver]]


async def test_a_stream_united_with_itself_has_channels_of_its_own_for_each_edge() -> None:
    """Each record comes twice, and a barrier is waited for on both."""
    made = graph()
    stream = source(made, name="numbers")
    both: Any = stream.union(stream).map(lambda value: value)
    both.sink_to(CollectSink())
    deployment = deployed(made, parallelism=1)
    gate = deployment.tasks[SubtaskId(2, 0)]._gate
    assert gate is not None
    assert len(gate.channels) == 2
    for writer in node_of(deployment, 1, 0).main.writers:
        writer.emit(RecordBatch([7]))
    assert [taken(channel) for channel in gate.channels] == [[7], [7]]


async def test_side_outputs_have_writers_of_their_own() -> None:
    """The tagged edge does not carry the main output."""
    made = graph()
    stream: Any = source(made, name="numbers").map(lambda value: value)
    stream.get_side_output(OutputTag("late")).sink_to(CollectSink())
    deployment = deployed(made, parallelism=1)
    head = node_of(deployment, 2, 0)
    assert head.main.writers == []
    assert len(head.sides["late"].writers) == 1


async def test_chained_operators_have_no_channel_between_them() -> None:
    """They are called."""
    made = deployed(pair("forward"), parallelism=1, chaining=True)
    assert made.channels == []
    (task,) = made.tasks.values()
    assert [child.operator for child in task.head.main.children] == [task.nodes[1].operator]


async def test_channels_have_the_configured_bounds() -> None:
    """Capacity, and batches no longer than a unit of work."""
    made = deployed(pair("rebalance", 2), channel_capacity=77, records_max=5)
    assert {channel.capacity for channel in made.channels} == {77}
    assert {channel.coalesced_max for channel in made.channels} == {5}


async def test_all_outputs_of_a_task_share_its_room() -> None:
    """One full channel is enough to hold it up."""
    made = deployed(pair("rebalance", 3), channel_capacity=1)
    (writer,) = node_of(made, 1, 0).main.writers
    assert len({id(channel.room) for channel in writer.channels}) == 1
    writer.emit(RecordBatch([1]))
    assert writer.channels[0].room.full == 1
    (other,) = node_of(made, 1, 1).main.writers
    assert other.channels[0].room.full == 0


# -- operators ------------------------------------------------------------


async def test_every_subtask_has_an_operator_and_a_context_of_its_own() -> None:
    """With its place in the job."""
    made = deployed(pair("key_by", 2), job_parameters={"a": "b"})
    nodes = [node_of(made, 2, index) for index in range(2)]
    assert nodes[0].operator is not nodes[1].operator
    context: Any = nodes[1].context
    assert (context.operator_name, context.uid) == ("target", "target")
    assert (context.subtask_index, context.parallelism, context.max_parallelism) == (1, 2, 8)
    # The second attempt, counted from 0.
    assert (context.attempt, context.job_name, context.job_parameters) == (1, "job", {"a": "b"})
    assert context.restored_checkpoint_id is None


async def test_keyed_state_exists_behind_a_keyed_edge_only() -> None:
    """Elsewhere asking for it says what to do."""
    made = deployed(pair("key_by", 2))
    for index in range(2):
        keyed: Any = node_of(made, 2, index).context.keyed_state
        assert keyed.key_group_range == key_group_range(MAX_PARALLELISM, 2, index)
    with pytest.raises(StateError, match="call key_by before it"):
        _ = node_of(made, 1, 0).context.keyed_state
    assert len(made.backends) == 2


async def test_a_state_file_is_named_by_subtask_and_attempt() -> None:
    """Two attempts never write to one file."""
    made = deployed(pair("forward"), storage=InMemoryCheckpointStorage())
    cut: Any = made.tasks[SubtaskId(2, 1)].cut
    assert cut._file_name == "2-1-e3-a2"


async def test_without_checkpoints_nothing_is_cut() -> None:
    """Tasks need not linger either."""
    made = deployed(pair("forward"))
    assert all(task.cut is None for task in made.tasks.values())


# -- restored state ------------------------------------------------------------


class Saved:
    """State of operator `target` as two former subtasks left it; fits `RestoredOperators`."""

    checkpoint_id = 42

    def __init__(self, keyed: list[RestoredKeyedState], finished: set[str] | None = None) -> None:
        self._keyed = keyed
        self._finished = finished or set()

    def keyed(self, uid: str, key_groups: KeyGroupRange) -> list[RestoredKeyedState]:
        return self._keyed if uid == "target" else []

    def operator_state(self, uid: str) -> list[RestoredOperatorState | None] | None:
        if uid != "target":
            return None
        former: list[RestoredOperatorState | None] = []
        for entries in ([1, 2], [3]):
            backend = OperatorStateBackend()
            backend.get_list_state(OFFSETS).update(entries)
            former.append(RestoredOperatorState.parse(bytes(backend.snapshot()), "state"))
        return former

    def finished(self, uid: str) -> bool:
        return uid in self._finished


def saved_counts() -> list[RestoredKeyedState]:
    """Keys 0 to 19, each counted as itself."""
    keyed = HeapKeyedStateBackend(KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM)
    state: Any = keyed.get_partitioned_state(COUNTS)
    for key in range(20):
        keyed.set_current_key(key)
        state.update(key)
    sink = io.BytesIO()
    writer = SnapshotFileWriter(sink)
    writer.add_keyed("target", keyed.snapshot(), lambda: True)
    writer.finish()
    restored = SnapshotFile.open(sink.getvalue()).keyed("target")
    assert restored is not None
    return [restored]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
async def test_keyed_state_goes_to_the_owner_of_its_key_group(parallelism: int) -> None:
    """Whatever the parallelism was when it was saved."""
    made = deployed(pair("key_by", parallelism), restored=Saved(saved_counts()))
    for index in range(parallelism):
        keyed: Any = node_of(made, 2, index).context.keyed_state
        keyed.get_partitioned_state(COUNTS)
        mine = key_group_range(MAX_PARALLELISM, parallelism, index)
        assert sorted(keyed.keys("counts")) == [
            key for key in range(20) if key_group_of(encode_key(key), MAX_PARALLELISM) in mine
        ]


@pytest.mark.parametrize(
    ("parallelism", "expected"), [(2, [[1, 2], [3]]), (3, [[1], [2], [3]]), (1, [[1, 2, 3]])]
)
async def test_operator_state_goes_to_its_subtasks(
    parallelism: int, expected: list[list[int]]
) -> None:
    """Each keeps its own, or it is dealt out anew."""
    made = deployed(pair("rebalance", parallelism), restored=Saved([]))
    states = [node_of(made, 2, i).context.operator_state for i in range(parallelism)]
    assert [list(state.get_list_state(OFFSETS).get()) for state in states] == expected


async def test_an_operator_knows_the_checkpoint_it_was_restored_from() -> None:
    """One that is new to the job was not restored."""
    made = deployed(pair("rebalance", 2), restored=Saved([]))
    assert node_of(made, 2, 0).context.restored_checkpoint_id == 42
    assert node_of(made, 1, 0).context.restored_checkpoint_id is None


async def test_a_task_is_restored_as_finished_if_all_its_operators_had_finished() -> None:
    """One that had not is enough to run it again."""
    made = deployed(pair("rebalance", 2), restored=Saved([], finished={"target"}))
    assert made.tasks[SubtaskId(2, 0)].restored_finished
    assert not made.tasks[SubtaskId(1, 0)].restored_finished
    chained = deployed(
        pair("forward"), parallelism=1, chaining=True, restored=Saved([], finished={"target"})
    )
    assert not chained.tasks[SubtaskId(1, 0)].restored_finished


async def test_mail_of_an_operator_reaches_its_own_task() -> None:
    """As a timer: between two records."""
    made = deployed(pair("forward"))
    node_of(made, 2, 1).context.send_mail(lambda: ())
    (mail,) = made.tasks[SubtaskId(2, 1)].mailbox.mails
    assert mail.between_records
    assert not made.tasks[SubtaskId(2, 0)].mailbox.mails


async def test_a_failure_of_an_operator_is_mail_that_raises() -> None:
    """It waits for the end of the work that is under way."""
    made = deployed(pair("forward"))
    node_of(made, 2, 0).context.fail(OSError("gone"))
    (mail,) = made.tasks[SubtaskId(2, 0)].mailbox.mails
    with pytest.raises(Exception, match="'target'"):
        mail.run()
