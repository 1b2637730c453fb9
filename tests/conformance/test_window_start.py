"""The start of a window is where Flink has it, by the table it printed."""

import pytest

from operators.elements import MIN_TIMESTAMP
from operators.window_grid import TimeWindow
from tests.conformance.case_files import load_tables


def test_start_of_the_window_of_a_timestamp(request: pytest.FixtureRequest) -> None:
    """Rounded down for times before 1970 too, shifted by positive and negative offsets."""
    tables = load_tables(request.config.getoption("--cases"), "a_window_start")
    if tables is None:
        pytest.skip("the folder of --cases has no a_window_start.json")
    rows = [row for row in tables["rows"] if row[0] != MIN_TIMESTAMP]  # There Flink underflows.
    starts = [TimeWindow.get_window_start_with_offset(*row[:3]) for row in rows]
    assert starts == [row[3] for row in rows]
