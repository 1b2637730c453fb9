"""What a task gives to each of its operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from operators.connector_results import as_failure
from operators.metrics import MetricGroup
from operators.stream_operator import Work
from statebackends.backend import KeyedStateBackend
from statebackends.clock import Clock
from statebackends.errors import StateError
from statebackends.operator_state import OperatorStateBackend


@dataclass(slots=True, kw_only=True)
class SubtaskContext:
    """The `OperatorContext` of one operator in one subtask."""

    job_name: str
    operator_name: str
    uid: str
    subtask_index: int
    parallelism: int
    max_parallelism: int
    attempt: int
    restored_checkpoint_id: int | None
    clock: Clock
    metrics: MetricGroup
    operator_state: OperatorStateBackend
    auto_watermark_interval_ms: int
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    keyed: KeyedStateBackend | None = None
    mail: Callable[[Callable[[], Work]], None] = field(repr=False)
    wake: Callable[[], None] = field(repr=False)
    failed: Callable[[BaseException], None] = field(repr=False)

    @property
    def keyed_state(self) -> KeyedStateBackend:
        """The keyed state of this operator; `StateError` where its input is not keyed."""
        if self.keyed is None:
            raise StateError(
                f"operator {self.operator_name!r} has no keyed state: its input is not keyed;"
                " call key_by before it"
            )
        return self.keyed

    def send_mail(self, action: Callable[[], Work]) -> None:
        """Has the task call `action` between two records and send on what it returns."""
        self.mail(action)

    def output_freed(self) -> None:
        """Wakes the task after `has_room` of the operator turned true."""
        self.wake()

    def fail(self, error: BaseException) -> None:
        """Fails the task as if `error` had been raised in the operator."""
        self.failed(as_failure(error))
