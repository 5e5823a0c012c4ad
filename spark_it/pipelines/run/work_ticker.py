"""Progress within a batch, printed every ten seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import SparkContext

    from wirebroker.base.clock import Clock
    from wirebroker.pipelines.run.reporter import Reporter

_EVERY_S: Final = 10.0


class WorkTicker:
    """Printer of a batch's progress."""

    def __init__(self, context: SparkContext, reporter: Reporter, clock: Clock) -> None:
        self._context = context
        self._reporter = reporter
        self._clock = clock
        self._began: float | None = None
        self._reported_at = 0.0
        self._activity = ""

    def begin(self, activity: str) -> None:
        """Note that work begins."""
        self._activity = activity
        self._reported_at = self._began = self._clock.monotonic()

    def end(self) -> None:
        """Note that work has ended."""
        self._began = None

    def look(self) -> None:
        """Print a line if it is due; called repeatedly."""
        began, now = self._began, self._clock.monotonic()
        if began is not None and now - self._reported_at >= _EVERY_S:
            self._reported_at = now
            self._reporter.work(self._activity, now - began, self._tasks())

    def _tasks(self) -> tuple[int, int]:
        """Return how many tasks of active stages are complete, and their number."""
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
        available = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in available), sum(
            stage.numTasks for stage in available
        )
