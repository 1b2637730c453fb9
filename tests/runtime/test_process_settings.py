"""The interpreter's settings are the job's while it runs, and the program's again after it."""

import gc
import sys

from runtime.process_settings import (
    GC_THRESHOLDS,
    freeze_started_objects,
    job_process_settings,
)


def settings() -> tuple[float, tuple[int, int, int], int]:
    """Switch interval, thresholds and number of frozen objects."""
    return sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count()


def test_settings_are_restored_at_the_end() -> None:
    """What was frozen is the collector's again, too."""
    before = settings()
    with job_process_settings():
        freeze_started_objects()
        assert gc.get_threshold() == GC_THRESHOLDS
        assert gc.get_freeze_count() > before[2]
    assert settings() == before


def test_settings_stay_until_the_last_job_has_ended() -> None:
    """Two jobs of one process do not undo each other's."""
    before = settings()
    with job_process_settings():
        with job_process_settings():
            pass
        assert gc.get_threshold() == GC_THRESHOLDS
    assert settings() == before


def test_nothing_is_frozen_in_a_process_of_others() -> None:
    """A host's objects stay in its collector's sight."""
    before = settings()
    freeze_started_objects()
    assert settings() == before


def test_passes_of_a_job_bring_no_full_pass_after_it() -> None:
    """The count that leads to one is back at 0."""
    with job_process_settings():
        for _ in range(50):
            gc.collect(1)
    assert gc.get_count()[2] == 0
