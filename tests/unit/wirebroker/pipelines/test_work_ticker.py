"""A line every ten seconds while a batch runs, and none otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wirebroker.pipelines.run.reporter import WorkTicker


def test_progress_line_is_written_every_ten_seconds_of_a_batch():
    reported: list[Any] = []
    time = SimpleNamespace(now=0.0)
    clock: Any = SimpleNamespace(monotonic=lambda: time.now)
    reporter: Any = SimpleNamespace(work=lambda *work: reported.append(work))
    stages = {1: SimpleNamespace(numTasks=8, numCompletedTasks=3), 2: None}
    tracker = SimpleNamespace(getActiveStageIds=lambda: list(stages), getStageInfo=stages.get)
    context: Any = SimpleNamespace(statusTracker=lambda: tracker)
    ticker = WorkTicker(context, reporter, clock)

    def look_for(seconds: int) -> None:
        for _ in range(4 * seconds):
            time.now += 0.25
            ticker.look()

    look_for(30)
    assert not reported
    ticker.begin("batch 7")
    look_for(9)
    assert not reported
    look_for(16)
    assert reported == [("batch 7", 10.0, (3, 8)), ("batch 7", 20.0, (3, 8))]
    ticker.end()
    look_for(30)
    ticker.begin("batch 8")
    look_for(10)
    assert reported[2:] == [("batch 8", 10.0, (3, 8))]
