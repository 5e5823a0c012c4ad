"""A job's output: a line for users and one of JSON for each batch, and a summary."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark import SparkContext

    from wirebroker.base.clock import Clock
    from wirebroker.pipelines.delivery.slice_sender import SliceSent
    from wirebroker.segments.loss_report import LostRange

_OF_DELIVERIES: Final = (
    *("batches", "records", "dead_letters", "bytes", "slices_sent_before", "faults"),
)
_EVERY_S: Final = 10.0


class Reporter:
    """Reporter of one run.

    JSON lines are appended to the file `metrics`. `totals` are the counts in the summary.
    """

    def __init__(
        self,
        job: str,
        metrics: Path | None,
        clock: Clock,
        totals: tuple[str, ...] = _OF_DELIVERIES,
    ) -> None:
        self._job = job
        self._metrics = metrics
        self._clock = clock
        self._began = clock.monotonic()
        self._is_torn = False  # whether the file may end within a line
        self._totals = dict.fromkeys(totals, 0)
        if metrics is not None:
            metrics.parent.mkdir(parents=True, exist_ok=True)

    def batch(self, batch: int, sent: Iterable[SliceSent], began: float, **extra: Any) -> None:
        """Report a batch that began at this monotonic time."""
        slices = list(sent)
        counts = {
            "records": sum(result.records for result in slices),
            "dead_letters": sum(result.dead_letters for result in slices),
            "bytes": sum(result.sent_bytes for result in slices),
            "slices_sent_before": sum(result.was_sent for result in slices),
        }
        damaged = sum(result.damaged_files for result in slices)
        if damaged:
            counts["damaged_files"] = damaged
        self.count(batches=1, **counts)
        seconds = self._clock.monotonic() - began
        rate = counts["records"] / seconds if seconds else 0.0
        self._write(
            "batch", batch=batch, **counts, seconds=round(seconds, 3), rate=round(rate), **extra
        )
        dead = f", {counts['dead_letters']} dead letters" if counts["dead_letters"] else ""
        dead += f", {damaged} damaged files" if damaged else ""
        before = counts["slices_sent_before"]
        again = f", {before} of {len(slices)} slices were sent before" if before else ""
        self._say(
            f"batch {batch}: {counts['records']} records{dead}{again}, "
            f"{seconds:.1f} s, {rate:,.0f} records/s"
        )

    def micro_batch(self, progress: Mapping[str, Any]) -> None:
        """Report a batch from Spark's progress report."""
        batch, records = progress["batchId"], progress["numInputRows"]
        seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        self.count(batches=1, records=records)
        rate = records / seconds if seconds else 0.0
        self._write("batch", batch=batch, records=records, seconds=seconds, rate=round(rate))
        self._say(f"batch {batch}: {records} records, {seconds:.1f} s, {rate:,.0f} records/s")

    def count(self, **counts: int) -> None:
        """Add to the summary's counts."""
        for name, count in counts.items():
            self._totals[name] = self._totals.get(name, 0) + count

    def found(self, batch: int, files: int, size: int) -> None:
        """Report a batch's files."""
        self._say(f"batch {batch}: {files} files found, {size:,} bytes")

    def work(self, activity: str, seconds: float, tasks: tuple[int, int]) -> None:
        """Report how many of Spark's tasks are complete."""
        done, count = tasks
        self._say(f"{activity}: running for {seconds:.0f} s, {done} of {count} tasks are done")

    def fault(self, why: str) -> None:
        """Report that the query restarts."""
        self._totals["faults"] += 1
        self._write("fault", why=why)
        self._say(f"failed, restarting: {why}")

    def cleared(self, files: int) -> None:
        """Report removed temporary files (broken_start.py)."""
        if files:
            self.count(cleared_files=files)
            self._say(f"removed {files} temporary files of a run that ended before its first batch")

    def lost(self, ranges: Sequence[LostRange]) -> None:
        """Report and count lost offsets."""
        deleted = [
            lost_range for lost_range in ranges if lost_range.from_offset == lost_range.end_offset
        ]
        offsets = sum(lost_range.end_offset - lost_range.from_offset for lost_range in ranges)
        self.count(lost_offsets=offsets, lost_partitions=len(deleted))
        for topic, partition, start, end in ranges:
            self._write("loss", topic=topic, partition=partition, start=start, end=end)
            description = (
                f"offsets {start} to {end - 1} are" if end > start else f"all from {start} are"
            )
            self._say(f"{topic}-{partition}: {description} gone; skipped")

    def summary(self, **extra: Any) -> dict[str, Any]:
        """Report and return the run's totals."""
        seconds = self._clock.monotonic() - self._began
        totals = {**self._totals, "seconds": round(seconds, 3), **extra}
        self._write("summary", **totals)
        text = ", ".join(f"{name} {value}" for name, value in totals.items())
        self._say(f"done: {text}")
        return totals

    def _write(self, kind: str, **fields: Any) -> None:
        if self._metrics is None:
            return
        line = {"time_ms": self._clock.now_ms(), "job": self._job, "kind": kind, **fields}
        text = json.dumps(line) + "\n"
        try:
            with self._metrics.open("a", encoding="utf-8") as file:
                file.write(f"\n{text}" if self._is_torn else text)
            self._is_torn = False
        except OSError as error:
            # Records matter more than metrics: the job continues.
            self._is_torn = True
            self._say(f"a line of {self._metrics} is lost: {error}")

    def _say(self, text: str) -> None:
        sys.stdout.write(f"{self._job}: {text}\n")
        sys.stdout.flush()


class WorkTicker:
    """Printer of a batch's progress, every ten seconds."""

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
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]
        available = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in available), sum(
            stage.numTasks for stage in available
        )
