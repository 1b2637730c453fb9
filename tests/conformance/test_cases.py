"""Operators do what Flink's do, case by case, in four modes."""

from pathlib import Path

import pytest

from tests.conformance.case_files import Case, load_cases
from tests.conformance.runner import Mode, mismatches, modes_of


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder: Path = metafunc.config.getoption("--cases")
    parameters = []
    for case in load_cases(folder):
        reason = case.left_out
        if reason is not None:
            marks = [pytest.mark.left_out(f"{case.theme}: {reason}")]
            parameters.append(pytest.param(case, Mode.AS_WRITTEN, id=case.id, marks=marks))
            continue
        parameters += [
            pytest.param(case, mode, id=f"{case.id}-{mode.value}") for mode in modes_of(case)
        ]
    metafunc.parametrize(("case", "mode"), parameters)


def test_outputs_are_those_of_flink(case: Case, mode: Mode) -> None:
    """Step by step the same records, timestamps, watermarks and side outputs come out."""
    found = mismatches(case, mode)
    assert not found, f"{len(found)} steps differ, first\n{found[0]}"
