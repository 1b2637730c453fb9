"""The settings of a job while it is being written: what the job says under what a start says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.config import JobConfig, find_option, job_config


class SettingLayers:
    """Values by configuration key: the command line's over the job's over the defaults.

    Reading gives what will run, so a job sees the parallelism that the command line asked for.
    """

    def __init__(self, overrides: Mapping[str, object] | None = None) -> None:
        self._overrides = dict(overrides or {})
        self._job: dict[str, object] = {}

    def set(self, key: str, value: object, source: str = "") -> None:
        """The job sets an option; raises ConfigurationError naming `source` (a call) or the key."""
        self._job[key] = find_option(key).read(value, source)

    # The type of a value is that of its option, which a key cannot tell the type checker.
    def get(self, key: str) -> Any:
        """The value of an option in force."""
        for layer in (self._overrides, self._job):
            if key in layer:
                return layer[key]
        return find_option(key).default

    def integer(self, key: str) -> int:
        """The value in force of an option that holds an integer."""
        value = self.get(key)
        assert isinstance(value, int), f"{key} is no integer option"
        return value

    def freeze(self, job_name: str | None, default_name: str) -> JobConfig:
        """The configuration of an execution; later changes do not reach it.

        Raises ConfigurationError for values that contradict each other.
        """
        values: dict[str, object] = {"pipeline.name": default_name, **self._job}
        if job_name is not None:
            values["pipeline.name"] = job_name
        values.update(self._overrides)
        return job_config(values)
