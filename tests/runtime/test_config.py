"""Configuration: what texts mean, what is refused and how, and the documentation of it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.time import Duration, Time
from runtime.config import OPTIONS, JobConfig, job_config
from runtime.config_options import parse_duration_ms, show_duration
from runtime.config_views import (
    CheckpointConfig,
    ExecutionConfig,
    ExternalizedCheckpointRetention,
)
from runtime.configuration_docs import DOCUMENT, document
from runtime.errors import ConfigurationError
from runtime.setting_layers import SettingLayers
from runtime.survival_settings import CheckpointSettings, RecoverySettings, RestartSettings


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("10s", 10_000),
        ("200ms", 200),
        ("1 min", 60_000),
        ("1.5 h", 5_400_000),
        ("2 days", 172_800_000),
        ("250", 250),
        (" 3 SEC ", 3_000),
    ],
)
def test_durations_are_read_with_their_units(text: str, milliseconds: int) -> None:
    """A bare number is milliseconds, as in Flink."""
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "s", "10 parsecs", "1 s 2 ms", "0.5ms", "1e3"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="not"):
        parse_duration_ms(text)


@given(st.integers(0, 10**12))
def test_a_duration_shown_is_the_duration_read(milliseconds: int) -> None:
    """The documentation's defaults can be copied."""
    assert parse_duration_ms(show_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    "value", [2_000, timedelta(seconds=2), Time.seconds(2), Duration.of_seconds(2), "2 s"]
)
def test_every_form_of_a_duration_is_taken(value: object) -> None:
    """Python's, PyFlink's and text mean the same."""
    config = job_config({"execution.checkpointing.interval": value})
    assert config.checkpoints.interval_ms == 2_000


@pytest.mark.parametrize("word", ["off", "none", "0", None])
def test_checkpoints_can_be_turned_off(word: str | None) -> None:
    """The command line can take back what the job turned on."""
    assert not job_config({"execution.checkpointing.interval": word}).checkpoints.enabled


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    """A slip of the finger is answered with the word that was meant."""
    with pytest.raises(ConfigurationError, match=r"did you mean 'restart-strategy\.type'\?"):
        job_config({"restart-strategy.typ": "none"})


def test_a_key_like_no_other_is_refused_without_a_guess() -> None:
    """A wrong guess would be worse than none."""
    with pytest.raises(ConfigurationError) as refused:
        job_config({"colour": "blue"})
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("parallelism.default", "many", "an integer from 1 to 32768"),
        ("parallelism.default", 0, "an integer from 1 to 32768"),
        ("parallelism.default", True, "an integer from 1 to 32768"),
        ("pipeline.operator-chaining.enabled", "perhaps", "'true' or 'false'"),
        ("restart-strategy.type", "sometimes", "'none'"),
        ("execution.checkpointing.interval", "9ms", "at least 10 ms"),
        ("execution.checkpointing.interval", timedelta(microseconds=1), "a duration"),
        ("restart-strategy.exponential-delay.jitter-factor", "2", "a number from 0 to 1"),
        ("execution.checkpointing.dir", "", "the path of a folder"),
    ],
)
def test_an_impossible_value_is_refused(key: str, value: object, allowed: str) -> None:
    """The message names the key, the value and what is allowed."""
    with pytest.raises(ConfigurationError) as refused:
        job_config({key: value})
    message = str(refused.value)
    assert key in message
    assert repr(value) in message
    assert allowed in message


def test_every_default_is_a_value_of_its_option() -> None:
    """Nothing is documented that would be refused."""
    for one in OPTIONS.values():
        assert one.read(one.default) == one.default


def test_every_default_can_be_written_as_text() -> None:
    """What the documentation shows means the default."""
    for one in OPTIONS.values():
        if shown := one.kind.show(one.default):
            assert one.read(shown) == one.default


def test_parallelism_above_the_number_of_key_groups_is_refused() -> None:
    """Some subtasks would own nothing."""
    with pytest.raises(ConfigurationError, match=r"parallelism\.default is 5, above"):
        JobConfig(parallelism=5, max_parallelism=4)


def test_a_start_cannot_be_fresh_and_from_a_checkpoint() -> None:
    """The two contradict each other."""
    with pytest.raises(ConfigurationError, match="--fresh"):
        RecoverySettings(path="latest", fresh=True)


def test_a_first_wait_longer_than_the_longest_is_refused() -> None:
    """The message names both settings."""
    with pytest.raises(ConfigurationError, match=r"initial-backoff .* max-backoff"):
        RestartSettings(initial_backoff_ms=2_000, max_backoff_ms=1_000)


@pytest.mark.parametrize(
    ("checkpoints", "strategy"), [(False, "none"), (True, "exponential-delay")]
)
def test_the_default_restart_depends_on_checkpoints(checkpoints: bool, strategy: str) -> None:
    """Without state to go back to, starting again would repeat output from the beginning."""
    assert RestartSettings().effective_strategy(checkpoints=checkpoints) == strategy


def test_values_made_in_code_are_checked_too() -> None:
    """A settings object that exists is valid."""
    with pytest.raises(ConfigurationError, match=r"execution\.checkpointing\.timeout"):
        CheckpointSettings(timeout_ms=-1)


def test_the_command_line_outranks_the_job_and_the_job_the_default() -> None:
    """For values that are frozen as for getters."""
    layers = SettingLayers({"parallelism.default": 3})
    layers.set("parallelism.default", 2)
    layers.set("pipeline.auto-watermark-interval", "50 ms")
    config = layers.freeze("counts", "job")
    assert (config.parallelism, ExecutionConfig(layers).get_parallelism()) == (3, 3)
    assert config.auto_watermark_interval_ms == 50
    assert config.max_parallelism == JobConfig().max_parallelism


def test_a_frozen_configuration_does_not_follow_later_changes() -> None:
    """`execute` takes the settings as they are at that moment."""
    layers = SettingLayers()
    parameters = {"region": "north"}
    layers.set("pipeline.global-job-parameters", parameters)
    config = layers.freeze(None, "job")
    parameters["region"] = "south"
    layers.set("parallelism.default", 7)
    assert config.global_job_parameters == {"region": "north"}
    assert config.parallelism == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("checkpoint_interval", 5_000),
        ("checkpoint_timeout", 60_000),
        ("min_pause_between_checkpoints", 500),
        ("max_concurrent_checkpoints", 2),
        ("tolerable_checkpoint_failure_number", 4),
    ],
)
def test_checkpoint_settings_are_read_back_as_set(name: str, value: int) -> None:
    """PyFlink's setter and getter of a name belong together."""
    view = CheckpointConfig(SettingLayers())
    assert getattr(view, f"set_{name}")(value) is view
    assert getattr(view, f"get_{name}")() == value


def test_checkpoints_are_always_retained() -> None:
    """The other modes of PyFlink are refused, with what is to be done instead."""
    modes = ExternalizedCheckpointRetention
    view = CheckpointConfig(SettingLayers())
    assert not view.is_externalized_checkpoints_enabled()
    view.set_checkpoint_interval(1_000)
    assert view.set_externalized_checkpoint_retention(modes.RETAIN_ON_CANCELLATION) is view
    assert view.get_externalized_checkpoint_retention() is modes.RETAIN_ON_CANCELLATION
    assert view.is_externalized_checkpoints_enabled()
    for mode in (modes.DELETE_ON_CANCELLATION, modes.NO_EXTERNALIZED_CHECKPOINTS):
        with pytest.raises(ConfigurationError, match=r"RETAIN_ON_CANCELLATION.*--fresh"):
            view.set_externalized_checkpoint_retention(mode)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("parallelism", 3),
        ("max_parallelism", 128),
        ("auto_watermark_interval", 50),
        ("task_cancellation_timeout", 2_000),
        ("global_job_parameters", {"a": "b"}),
    ],
)
def test_execution_settings_are_read_back_as_set(name: str, value: object) -> None:
    """PyFlink's setter and getter of a name belong together."""
    view = ExecutionConfig(SettingLayers())
    assert getattr(view, f"set_{name}")(value) is view
    assert getattr(view, f"get_{name}")() == value


def test_object_reuse_is_on_until_it_is_switched_off() -> None:
    """And can be switched on again."""
    view = ExecutionConfig(SettingLayers())
    assert view.is_object_reuse_enabled()
    assert not view.disable_object_reuse().is_object_reuse_enabled()
    assert view.enable_object_reuse().is_object_reuse_enabled()


def test_an_error_names_the_call_that_set_the_value() -> None:
    """The author finds the line."""
    with pytest.raises(ConfigurationError, match=r"^set_parallelism \(parallelism\.default\): 0"):
        ExecutionConfig(SettingLayers()).set_parallelism(0)


def test_the_documentation_of_the_keys_is_current() -> None:
    """`python -m runtime.configuration_docs` has nothing to change."""
    assert DOCUMENT.read_text() == document()
