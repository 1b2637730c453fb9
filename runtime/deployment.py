"""Makes the tasks and channels of one attempt from the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from operators.graph import Partitioning
from operators.metrics import MetricGroup
from operators.stream_operator import Work
from runtime.chain import ChainNode, Route
from runtime.channel import CAPACITY_RECORDS, COALESCED_RECORDS_MAX, Channel, OutputRoom
from runtime.checkpoint_messages import AttemptId, SubtaskId
from runtime.context import SubtaskContext
from runtime.exchange import (
    BroadcastWriter,
    ForwardWriter,
    KeyGroupWriter,
    RebalanceWriter,
    RecordWriter,
)
from runtime.gate import InputGate
from runtime.joint_fork import ChildSlots, JointFork
from runtime.mailbox import Mail, Mailbox
from runtime.plan import ExecutionPlan, PlannedEdge, PlannedOperator, Vertex
from runtime.subtask_checkpoints import (
    INLINE_ENTRIES_MAX,
    CheckpointReplies,
    SubtaskCheckpoints,
)
from runtime.task import RECORDS_MAX, Task
from runtime.task_contracts import Spawn, TaskListener
from runtime.turn import LoopTurn, Wakeup
from statebackends.backend import KeyedStateBackend, KeyedStateBackendFactory
from statebackends.clock import Clock
from statebackends.keygroups import KeyGroupRange, key_group_range
from statebackends.operator_state import OperatorStateBackend
from statebackends.operator_state_format import RestoredOperatorState
from statebackends.snapshot import RestoredKeyedState
from statebackends.storage import CheckpointStorage


class RestoredOperators(Protocol):
    """The state that an attempt starts from, by operator."""

    @property
    def checkpoint_id(self) -> int:
        """The checkpoint it is from."""

    def keyed(self, uid: str, key_groups: KeyGroupRange) -> list[RestoredKeyedState]:
        """The keyed state of the former subtasks whose key groups meet the range."""

    def operator_state(self, uid: str) -> list[RestoredOperatorState | None] | None:
        """The operator state of all former subtasks by index; None: the operator is new."""

    def finished(self, uid: str) -> bool:
        """Whether all former subtasks of the operator had finished."""


class AttemptListener(TaskListener, Protocol):
    """Who coordinates the attempt's checkpoints."""

    def replies(self, subtask: SubtaskId) -> CheckpointReplies:
        """Where a subtask's parts of checkpoints are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSettings:
    """What is the same for all tasks of an attempt."""

    job_name: str
    attempt: AttemptId
    clock: Clock
    turn: LoopTurn
    backend: KeyedStateBackendFactory
    spawn: Spawn
    auto_watermark_interval_ms: int = 200
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    channel_capacity: int = CAPACITY_RECORDS
    records_max: int = RECORDS_MAX
    copy_records: bool = False
    """Each operator gets copies of its records."""
    storage: CheckpointStorage | None = None
    """None: no checkpoints."""
    inline_entries_max: int = INLINE_ENTRIES_MAX
    slots: ChildSlots = field(default_factory=ChildSlots)


@dataclass(slots=True)
class Deployment:
    """The tasks of one attempt, by vertex and subtask, and the channels between them."""

    tasks: dict[SubtaskId, Task] = field(default_factory=dict)
    channels: list[Channel] = field(default_factory=list)
    backends: list[KeyedStateBackend] = field(default_factory=list)
    metrics: dict[SubtaskId, MetricGroup] = field(default_factory=dict)


@dataclass(slots=True)
class _Slot:
    """One subtask under construction."""

    vertex: Vertex
    index: int
    wakeup: Wakeup
    mailbox: Mailbox
    room: OutputRoom
    metrics: MetricGroup
    nodes: dict[int, ChainNode] = field(default_factory=dict)
    inputs: list[Channel] = field(default_factory=list)


def deploy(
    plan: ExecutionPlan,
    settings: DeploymentSettings,
    listener: AttemptListener,
    restored: RestoredOperators | None = None,
) -> Deployment:
    """Makes everything; nothing runs yet."""
    return _Deployer(plan, settings, listener, restored).deploy()


class _Deployer:
    def __init__(
        self,
        plan: ExecutionPlan,
        settings: DeploymentSettings,
        listener: AttemptListener,
        restored: RestoredOperators | None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._listener = listener
        self._restored = restored
        self._deployment = Deployment()
        self._forks = JointFork(settings.clock, settings.slots, settings.spawn)
        self._slots: dict[tuple[int, int], _Slot] = {}

    def deploy(self) -> Deployment:
        for vertex in self._plan.vertices:
            for index in range(vertex.parallelism):
                self._slots[vertex.id, index] = self._make_slot(vertex, index)
        for vertex in self._plan.vertices:
            for edge in vertex.inputs:
                self._connect(edge)
        for slot in self._slots.values():
            self._deployment.tasks[SubtaskId(slot.vertex.id, slot.index)] = self._make_task(slot)
        return self._deployment

    # -- operators -----------------------------------------------------------------------------

    def _make_slot(self, vertex: Vertex, index: int) -> _Slot:
        wakeup = Wakeup(self._settings.turn)
        metrics = MetricGroup(self._settings.clock, (vertex.name, str(index)))
        slot = _Slot(vertex, index, wakeup, Mailbox(wakeup), OutputRoom(), metrics)
        self._deployment.metrics[SubtaskId(vertex.id, index)] = metrics
        for operator in vertex.operators:
            slot.nodes[operator.node_id] = self._make_node(slot, operator)
        for link in vertex.links:
            route = _route(slot.nodes[link.sender], link.side_tag)
            route.children.append(slot.nodes[link.receiver])
        return slot

    def _make_node(self, slot: _Slot, operator: PlannedOperator) -> ChainNode:
        settings = self._settings
        mailbox = slot.mailbox

        def mail(action: Callable[[], Work]) -> None:
            work = Mail(lambda: node.drive_action(action, "in a timer"), between_records=True)
            mailbox.put(work)

        def failed(error: BaseException) -> None:
            mailbox.put_first(Mail(lambda: node.raise_failure(error), at_once=True))

        context = SubtaskContext(
            job_name=settings.job_name,
            operator_name=operator.name,
            uid=operator.uid,
            subtask_index=slot.index,
            parallelism=operator.parallelism,
            max_parallelism=operator.max_parallelism,
            # An attempt's number begins at 1, PyFlink's get_attempt_number at 0.
            attempt=settings.attempt.attempt - 1,
            restored_checkpoint_id=self._restored_checkpoint(operator.uid),
            clock=settings.clock,
            metrics=slot.metrics.add_group(operator.name),
            operator_state=self._operator_state(operator, slot.index),
            auto_watermark_interval_ms=settings.auto_watermark_interval_ms,
            job_parameters=settings.job_parameters,
            keyed=self._keyed_state(operator, slot.index) if operator.keyed else None,
            mail=mail,
            wake=slot.wakeup.wake,
            failed=failed,
        )
        node = ChainNode(operator.factory(), context, keyed=operator.keyed)
        # For the next operators and for what the function itself goes on doing to its outputs.
        node.copies_input = node.operator.copies_outputs = settings.copy_records
        return node

    def _restored_checkpoint(self, uid: str) -> int | None:
        restored = self._restored
        if restored is None or restored.operator_state(uid) is None:
            return None
        return restored.checkpoint_id

    def _operator_state(self, operator: PlannedOperator, index: int) -> OperatorStateBackend:
        backend = OperatorStateBackend()
        former = None if self._restored is None else self._restored.operator_state(operator.uid)
        if former is not None:
            backend.restore(former, len(former), operator.parallelism, index)
        return backend

    def _keyed_state(self, operator: PlannedOperator, index: int) -> KeyedStateBackend:
        key_groups = key_group_range(operator.max_parallelism, operator.parallelism, index)
        backend = self._settings.backend(key_groups, operator.max_parallelism)
        if self._restored is not None:
            backend.restore(self._restored.keyed(operator.uid, key_groups))
        self._deployment.backends.append(backend)
        return backend

    # -- channels ------------------------------------------------------------------------------

    def _connect(self, edge: PlannedEdge) -> None:
        senders = self._vertex(edge.source_vertex).parallelism
        target = self._vertex(edge.target_vertex)
        for sender in range(senders):
            slot = self._slots[edge.source_vertex, sender]
            receivers = range(target.parallelism)
            if edge.partitioning is Partitioning.FORWARD:
                receivers = range(sender, sender + 1)
            channels = [self._channel(edge, slot, target.id, receiver) for receiver in receivers]
            node = slot.nodes[edge.source_node]
            _route(node, edge.side_tag).writers.append(
                self._writer(edge, channels, node, target.head.max_parallelism, sender)
            )

    def _channel(self, edge: PlannedEdge, slot: _Slot, target: int, receiver: int) -> Channel:
        channel = Channel(
            input_index=edge.input_index,
            upstream=slot.vertex.name,
            upstream_subtask=slot.index,
            capacity=self._settings.channel_capacity,
            coalesced_max=min(COALESCED_RECORDS_MAX, self._settings.records_max),
        )
        channel.connect_writer(slot.room, slot.wakeup.wake)
        self._slots[target, receiver].inputs.append(channel)
        self._deployment.channels.append(channel)
        return channel

    @staticmethod
    def _writer(
        edge: PlannedEdge,
        channels: list[Channel],
        node: ChainNode,
        max_parallelism: int,
        sender: int,
    ) -> RecordWriter:
        if edge.partitioning is Partitioning.KEY_GROUP:
            assert edge.key_selector is not None
            return KeyGroupWriter(channels, edge.key_selector, max_parallelism, node.key_failure)
        if len(channels) == 1:
            return ForwardWriter(channels)
        if edge.partitioning is Partitioning.BROADCAST:
            return BroadcastWriter(channels)
        if edge.partitioning is Partitioning.REBALANCE:
            return RebalanceWriter(channels, first=sender)
        return ForwardWriter(channels)

    def _vertex(self, vertex_id: int) -> Vertex:
        return self._plan.vertices[vertex_id - 1]

    # -- tasks ---------------------------------------------------------------------------------

    def _make_task(self, slot: _Slot) -> Task:
        settings = self._settings
        vertex = slot.vertex
        gate = InputGate(slot.inputs, slot.wakeup.wake) if slot.inputs else None
        subtask = SubtaskId(vertex.id, slot.index)
        restored = self._restored
        task = Task(
            name=f"{vertex.name} ({slot.index + 1}/{vertex.parallelism})",
            subtask=subtask,
            head=slot.nodes[vertex.head.node_id],
            gate=gate,
            wakeup=slot.wakeup,
            mailbox=slot.mailbox,
            room=slot.room,
            turn=settings.turn,
            listener=self._listener,
            restored_finished=restored is not None
            and all(restored.finished(operator.uid) for operator in vertex.operators),
            lingers=settings.storage is not None,
            records_max=settings.records_max,
        )
        if settings.storage is not None:
            epoch, attempt = settings.attempt
            task.cut = SubtaskCheckpoints(
                task.nodes,
                settings.storage,
                self._listener.replies(subtask),
                file_name=f"{vertex.id}-{slot.index}-e{epoch}-a{attempt}",
                slots=settings.slots,
                forks=self._forks,
                resume=task.resume,
                spawn=partial(settings.spawn, context=task.context),
                inline_entries_max=settings.inline_entries_max,
                passive=task.restored_finished,
            )
        return task


def _route(node: ChainNode, side_tag: str | None) -> Route:
    return node.main if side_tag is None else node.side(side_tag)
