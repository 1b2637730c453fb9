"""What can be set on one operator of the job, from the stream or sink that stands for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from operators.graph import ChainingStrategy, StreamGraph, StreamNode
from statebackends.keygroups import MAX_PARALLELISM_LIMIT


def check_parallelism(parallelism: int, setting: str, limit: int = MAX_PARALLELISM_LIMIT) -> None:
    """Raises TypeError or ValueError unless `parallelism` is an int from 1 to `limit`."""
    if isinstance(parallelism, bool) or not isinstance(parallelism, int):
        raise TypeError(f"{setting} is an int from 1 to {limit}, not {parallelism!r}")
    if not 1 <= parallelism <= limit:
        raise ValueError(f"{setting} must be from 1 to {limit}, not {parallelism}")


class OperatorSettings(ABC):
    """The settings of one operator; each method returns the object itself."""

    _graph: StreamGraph

    @abstractmethod
    def _own_node(self, method: str) -> StreamNode:
        """The operator that is meant; TypeError naming `method` if there is not exactly one."""

    def get_name(self) -> str:
        """The operator's name in messages, metrics and the plan."""
        return self._own_node("get_name").name

    def name(self, name: str) -> Self:
        """Names the operator in messages, metrics and the plan; state does not depend on it."""
        node = self._own_node("name")
        node.name = _check_text(name, f"the name of operator {node.name!r}")
        return self

    def uid(self, uid: str) -> Self:
        """Gives the operator the address under which its state is found again.

        Raises ValueError if another operator of the job has the same uid.
        """
        node = self._own_node("uid")
        _check_text(uid, f"the uid of operator {node.name!r}")
        self._graph.check_uid(uid, node.id)
        node.uid = uid
        return self

    def set_description(self, description: str) -> Self:
        """A longer text for the plan."""
        self._own_node("set_description").description = description
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """How many subtasks run the operator, whatever the job's parallelism is.

        Raises ValueError outside 1 to the operator's max parallelism.
        """
        node = self._own_node("set_parallelism")
        setting = f"the parallelism of operator {node.name!r}"
        check_parallelism(parallelism, setting, node.max_parallelism or MAX_PARALLELISM_LIMIT)
        node.parallelism = parallelism
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of key groups, and so the most subtasks that the operator can ever have.

        Raises ValueError outside 1 to 32768 or below the operator's parallelism.
        """
        node = self._own_node("set_max_parallelism")
        check_parallelism(max_parallelism, f"the max parallelism of operator {node.name!r}")
        if node.parallelism is not None and max_parallelism < node.parallelism:
            raise ValueError(
                f"the max parallelism of operator {node.name!r} cannot be {max_parallelism}: its "
                f"parallelism is {node.parallelism}; lower that first"
            )
        node.max_parallelism = max_parallelism
        return self

    def disable_chaining(self) -> Self:
        """The operator gets a task of its own."""
        self._own_node("disable_chaining").chaining = ChainingStrategy.NEVER
        return self


def _check_text(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__} {text!r:.80}")
    if not text.strip():
        raise ValueError(f"{what} must not be empty")
    return text
