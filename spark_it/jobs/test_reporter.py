"""A job's output while the disk for its metrics is full."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.records.clocks import HandClock
from wirebroker.pipelines.run.reporter import Reporter

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_full_disk_loses_metrics_but_not_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = tmp_path / "metrics.jsonl"
    reporter = Reporter("job", metrics, HandClock())
    reporter.fault("first")
    metrics.rename(tmp_path / "kept")
    metrics.symlink_to("/dev/full")
    reporter.fault("lost")
    assert "metrics.jsonl is lost: [Errno 28] No space left" in capsys.readouterr().out
    metrics.unlink()
    (tmp_path / "kept").rename(metrics)
    with metrics.open("a", encoding="utf-8") as file:
        file.write('{"half a li')
    reporter.fault("second")
    reporter.summary()
    lines = metrics.read_text(encoding="utf-8").splitlines()
    metrics_read = [json.loads(line) for line in lines if line.endswith("}")]
    assert [metric.get("why", metric["kind"]) for metric in metrics_read] == [
        "first",
        "second",
        "summary",
    ]
    assert metrics_read[-1]["faults"] == 3
