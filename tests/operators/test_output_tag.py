"""Names of side outputs."""

import copy
import pickle

import pytest

from operators.output_tag import OutputTag


def test_tags_are_equal_by_their_id() -> None:
    """The type is a hint and does not count."""
    assert OutputTag("late") == OutputTag("late", int)
    assert hash(OutputTag("late")) == hash(OutputTag("late", int))
    assert OutputTag("late") != OutputTag("early")


def test_copies_stay_equal() -> None:
    """Tags are attributes of functions, which are copied."""
    tag: OutputTag[int] = OutputTag("late")
    assert copy.deepcopy(tag) == tag
    assert pickle.loads(pickle.dumps(tag)) == tag


def test_bad_ids_are_refused() -> None:
    """An id is a string and not empty."""
    with pytest.raises(ValueError, match="empty"):
        OutputTag("")
    with pytest.raises(TypeError, match="is a str"):
        OutputTag(3)  # type: ignore[arg-type]  # on purpose
