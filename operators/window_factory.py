"""Builds window operators: checks the settings where the job is written, picks the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from operators.functions import copy_function
from operators.output_tag import OutputTag
from operators.stream_operator import OperatorFactory, StreamOperator
from operators.time import TimeLike, to_ms
from operators.triggers import EventTimeTrigger, Trigger
from operators.window_contents import WindowContents
from operators.window_folding import FoldingWindowOperator
from operators.window_functions import ProcessWindowFunction, WindowFunction
from operators.window_operator import AnyWindowFunction, WindowOperator
from operators.windows import GridWindows, WindowAssigner


@dataclass(frozen=True, slots=True)
class _WindowOperatorFactory:
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: WindowContents[Any]
    function: AnyWindowFunction | None
    lateness_ms: int
    late_tag: OutputTag[Any] | None

    def __call__(self) -> StreamOperator:
        # One copy of all, so that functions which share an object go on sharing it.
        assigner, trigger, contents, function = copy_function(
            (self.assigner, self.trigger, self.contents, self.function)
        )
        at_end = type(trigger) is EventTimeTrigger and assigner.is_event_time()
        if at_end and isinstance(assigner, GridWindows):
            return FoldingWindowOperator(
                assigner, contents, function, self.lateness_ms, self.late_tag
            )
        return WindowOperator(
            assigner, trigger, contents, function, self.lateness_ms, self.late_tag
        )


def window_operator(
    assigner: WindowAssigner[Any, Any],
    contents: WindowContents[Any],
    function: AnyWindowFunction | None = None,
    *,
    trigger: Trigger[Any, Any] | None = None,
    allowed_lateness: TimeLike = 0,
    late_tag: OutputTag[Any] | None = None,
) -> OperatorFactory:
    """A factory of window operators; each subtask and attempt gets copies of the functions.

    Args:
        assigner: says which windows an element belongs to.
        contents: what is kept of the elements.
        function: turns what fires into outputs; None puts it out as it is.
        trigger: says when windows fire; by default what the assigner says.
        allowed_lateness: how long after their end windows take in elements and fire again.
        late_tag: the side output of late elements.

    Raises:
        TypeError: an argument is not of its kind.
        ValueError: the lateness is negative.
    """
    if not isinstance(assigner, WindowAssigner):
        raise TypeError(f"window() takes a WindowAssigner, not {assigner!r:.80}")
    if trigger is not None and not isinstance(trigger, Trigger):
        raise TypeError(f"trigger() takes a Trigger, not {trigger!r:.80}")
    if function is not None and not isinstance(function, WindowFunction | ProcessWindowFunction):
        raise TypeError(
            "a window function is an object of WindowFunction or ProcessWindowFunction, "
            f"not {type(function).__name__} {function!r:.80}"
        )
    lateness_ms = to_ms(allowed_lateness, "allowed_lateness")
    if lateness_ms < 0:
        raise ValueError(f"allowed_lateness must not be negative: {lateness_ms} ms")
    chosen = assigner.get_default_trigger() if trigger is None else trigger
    return _WindowOperatorFactory(assigner, chosen, contents, function, lateness_ms, late_tag)
