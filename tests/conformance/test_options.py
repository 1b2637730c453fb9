"""The conformance runner: its options, its comparison, and that it can fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.case_files import load_cases
from tests.conformance.comparison import agrees
from tests.conformance.runner import Mode, mismatches, modes_of

COUNT: dict[str, Any] = {
    "name": "count",
    "operator": {
        "kind": "window",
        "window": {"type": "tumbling_event_time", "size_ms": 10},
        "function": "count",
    },
    "steps": [{"record": ["a", 1], "ts": 1}, {"record": ["a", 2], "ts": 2}, {"watermark": 9}],
    "expected": [
        [],
        [],
        [{"record": {"key": "a", "window": [0, 10], "result": 2}, "ts": 9}, {"watermark": 9}],
    ],
}


def write(folder: Path, *cases: dict[str, Any]) -> Path:
    (folder / "a_own.json").write_text(json.dumps({"theme": "a_own", "cases": cases}))
    return folder


def prepare(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest('pytest_plugins = ["tests.conformance.options"]')


@pytest.mark.parametrize("option", ["--state-backend", "--timers"])
def test_what_is_not_built_is_refused(pytester: pytest.Pytester, option: str) -> None:
    """The error names option and value, before any test runs."""
    prepare(pytester)
    result = pytester.runpytest_inprocess(option, "rocksdb")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option} rocksdb is not built yet*"])


def test_a_missing_folder_is_refused(pytester: pytest.Pytester) -> None:
    """A mistyped folder does not pass for one without cases."""
    prepare(pytester)
    result = pytester.runpytest_inprocess("--cases", "nowhere")
    result.stderr.fnmatch_lines(["*no folder*nowhere*"])


def test_cases_of_later_versions_are_left_out_with_their_reason(
    pytester: pytest.Pytester,
) -> None:
    """They are deselected, not passed, and the summary says how many and why."""
    prepare(pytester)
    later = {**COUNT, "name": "later", "operator": {"kind": "cep"}}
    folder = write(pytester.mkdir("cases"), COUNT, later)
    runner = Path(__file__).parent / "test_cases.py"
    pytester.makepyfile(test_cases=runner.read_text(encoding="utf-8"))
    result = pytester.runpytest_inprocess("--cases", str(folder), "-v")
    result.assert_outcomes(passed=5, deselected=1)
    result.stdout.fnmatch_lines(
        ["*a_own-count-as_written*PASSED*", "*1 a_own: operator cep: comes with a later version*"]
    )


def test_the_same_case_agrees_in_every_mode(tmp_path: Path) -> None:
    """As written, restored, in one batch, cut at random and without folding."""
    (case,) = load_cases(write(tmp_path, COUNT))
    assert [mismatches(case, mode) for mode in modes_of(case)] == [[]] * 5


@pytest.mark.parametrize(
    "output",
    [
        {"record": {"key": "a", "window": [0, 10], "result": 3}, "ts": 9},
        {"record": {"key": "a", "window": [0, 10], "result": 2}, "ts": 8},
        {"side": "late", "record": ["a", 2], "ts": 2},
    ],
)
@pytest.mark.parametrize("mode", Mode)
def test_another_output_is_a_mismatch(tmp_path: Path, mode: Mode, output: Any) -> None:
    """A wrong value, a wrong timestamp and a missing record are found in every mode."""
    other = {**COUNT, "expected": [[], [], [output, {"watermark": 9}]]}
    (case,) = load_cases(write(tmp_path, other))
    assert len(mismatches(case, mode)) == 1


def test_a_record_beyond_our_times_is_expected_to_be_refused(tmp_path: Path) -> None:
    """Where Flink wraps around, an error is what has to come, and the case ends there."""
    far = {**COUNT, "steps": [{"record": ["a", 1], "ts": 2**62}, *COUNT["steps"][1:]]}
    (case,) = load_cases(write(tmp_path, far))
    assert len(case.expected) == 1
    assert mismatches(case, Mode.AS_WRITTEN) == []


def record(value: Any, timestamp: int, **more: Any) -> dict[str, Any]:
    return {"record": value, "ts": timestamp, **more}


def test_records_of_one_timestamp_may_come_in_any_order() -> None:
    """Timers are ordered by their time only."""
    assert agrees([record(1, 5), record(2, 5)], [record(2, 5), record(1, 5)])


def test_records_of_different_timestamps_may_not() -> None:
    """Nor may they change places with a watermark."""
    assert not agrees([record(1, 5), record(2, 6)], [record(2, 6), record(1, 5)])
    assert not agrees([record(1, 5), {"watermark": 5}], [{"watermark": 5}, record(1, 5)])


def test_side_outputs_are_compared_on_their_own() -> None:
    """Their place among the main output is nobody's promise, their order is."""
    late = [record(1, 1, side="late"), record(2, 2, side="late")]
    assert agrees([record(0, 0), *late], [*late, record(0, 0)])
    assert not agrees(late, late[::-1])


def test_after_a_rescale_the_order_is_free() -> None:
    """Records are a multiset, watermarks a set."""
    one = [record(1, 5), {"watermark": 5}, record(2, 6)]
    other = [record(2, 6), record(1, 5), {"watermark": 5}, {"watermark": 5}]
    assert agrees(one, other, rescaled=True)
    assert not agrees(one, [*other, record(2, 6)], rescaled=True)


def test_any_error_stands_for_any_error() -> None:
    """But not for outputs."""
    assert agrees([{"error": "NullPointerException"}], [{"error": "TypeError()"}])
    assert not agrees([{"error": "NullPointerException"}], [])
    assert not agrees([], [{"error": "TypeError()"}])


def test_elements_of_merged_windows_are_a_multiset() -> None:
    """Only where windows merge."""
    one, other = [record({"values": [1, 3]}, 5)], [record({"values": [3, 1]}, 5)]
    assert agrees(one, other, merging=True)
    assert not agrees(one, other)
