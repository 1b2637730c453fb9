"""The minimum over splits and over inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.combined_watermark import InputWatermarks, SplitWatermarks
from operators.elements import ACTIVE, IDLE, MIN_TIMESTAMP, Watermark


def splits(**watermarks: int) -> SplitWatermarks:
    combined = SplitWatermarks()
    for name, timestamp in watermarks.items():
        combined.register(name)
        combined.update(name, timestamp)
    return combined


def test_the_lowest_split_holds_back_the_others() -> None:
    """The output rises with the minimum only."""
    combined = splits(a=10, b=5)
    assert combined.elements() == (Watermark(5),)
    assert combined.elements() == ()
    combined.update("b", 20)
    assert combined.elements() == (Watermark(10),)


def test_a_new_split_holds_back_without_regress() -> None:
    """It has to pass what was put out before anything more comes."""
    combined = splits(a=10)
    combined.elements()
    combined.register("b")
    combined.update("a", 20)
    combined.update("b", 5)
    assert combined.elements() == ()
    combined.update("b", 15)
    assert combined.elements() == (Watermark(15),)


def test_all_splits_idle_is_idle_and_the_next_rise_is_active() -> None:
    """A watermark that does not rise leaves the status alone."""
    combined = splits(a=10, b=10)
    combined.elements()
    combined.mark("a", idle=True)
    combined.mark("b", idle=True)
    assert combined.elements() == (IDLE,)
    assert combined.elements() == ()
    combined.update("b", 7)
    assert combined.elements() == ()
    combined.update("b", 12)
    assert combined.elements() == (ACTIVE, Watermark(12))


def test_removing_the_lowest_split_releases_the_others() -> None:
    """Without any split there is nothing to say."""
    combined = splits(a=3, b=9)
    combined.elements()
    assert combined.unregister("a")
    assert not combined.unregister("a")
    assert combined.elements() == (Watermark(9),)
    combined.unregister("b")
    assert combined.elements() == ()


def test_a_name_is_taken_once() -> None:
    """Two splits of one name would share a watermark."""
    combined = splits(a=1)
    with pytest.raises(ValueError, match="'a' has a watermark already"):
        combined.register("a")


def test_partial_watermarks_show_who_holds_back() -> None:
    """Name, watermark and state of each split."""
    combined = splits(a=3, b=9)
    combined.mark("b", idle=True)
    assert list(combined.partial_watermarks()) == [("a", 3, False), ("b", 9, True)]


def test_an_input_that_goes_idle_releases_the_other() -> None:
    """Leaving it out raises the minimum at once."""
    inputs = InputWatermarks(2)
    assert inputs.watermark(0, 10) == ()
    assert inputs.watermark(1, 5) == (Watermark(5),)
    assert inputs.status(1, idle=True) == (Watermark(10),)
    assert inputs.status(0, idle=True) == (IDLE,)


def test_inputs_become_active_before_the_watermark_that_this_brings() -> None:
    """A receiver ignores the watermarks of an idle sender."""
    inputs = InputWatermarks(2)
    inputs.watermark(0, 10)
    inputs.watermark(1, 5)
    inputs.status(0, idle=True)
    inputs.status(1, idle=True)
    assert inputs.status(0, idle=False) == (ACTIVE, Watermark(10))


@given(
    st.lists(
        st.tuples(st.sampled_from(["wm", "idle", "active"]), st.integers(0, 2), st.integers(0, 20)),
        max_size=40,
    )
)
def test_output_of_inputs_rises_and_statuses_alternate(steps: list[tuple[str, int, int]]) -> None:
    """Whatever the inputs do."""
    inputs = InputWatermarks(3)
    last, idle = MIN_TIMESTAMP, False
    for kind, index, timestamp in steps:
        if kind == "wm":
            elements = inputs.watermark(index, timestamp)
        else:
            elements = inputs.status(index, kind == "idle")
        for element in elements:
            if isinstance(element, Watermark):
                assert element.timestamp > last
                last = element.timestamp
            else:
                assert element.idle is not idle
                idle = element.idle
