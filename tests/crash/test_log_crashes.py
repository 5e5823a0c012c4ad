"""Logs, their checkpoints and markers, cut at every call of a scripted workload.

    make test ARGS="tests/crash --seed random --crash-points 60000"   new ones (R1, R2 of the plan)
    pytest tests/crash --crash-at logs:7:120:KILL                     one, as a failure names it

A point is the run's seed, the event before which it is cut, and the kind of crash
(crash_states.py).
Starts after a crash may be cut as well. Then the log is used further, stops or crashes again, and
is reopened.
"""

from __future__ import annotations

import pytest

from tests.crash.compaction_points import CompactionRun
from tests.crash.copy_workload import CopyRun
from tests.crash.log_points import LogRun
from tests.crash.points import examine_points


@pytest.mark.timeout(3_600)
def test_logs_keep_required_records_at_every_crash_point(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    done = examine_points(request, "logs", LogRun, share=0.6)
    with capsys.disabled():
        print(f"\n  {done}")  # noqa: T201


@pytest.mark.timeout(3_600)
def test_compacted_logs_keep_the_last_value_of_each_key(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    done = examine_points(request, "compacted", CompactionRun, share=0.15)
    with capsys.disabled():
        print(f"\n  {done}")  # noqa: T201


@pytest.mark.timeout(3_600)
def test_log_copies_keep_copied_records_at_every_crash_point(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    done = examine_points(request, "copied", CopyRun, share=0.1)
    with capsys.disabled():
        print(f"\n  {done}")  # noqa: T201
