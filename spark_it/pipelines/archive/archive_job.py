"""The archive job."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from wirebroker.base.clock import SystemClock
from wirebroker.pipelines.archive.archive import MOST_OFFSETS, PartitionSummary, archive, compare
from wirebroker.pipelines.job.errors import PatienceError, PipelineError, first_line
from wirebroker.pipelines.job.job_file import RECREATED_TOPIC, setting
from wirebroker.pipelines.run.job_run import PAUSE_S
from wirebroker.pipelines.run.reporter import Reporter, WorkTicker
from wirebroker.pipelines.source.reader_options import refusal_in
from wirebroker.pipelines.spark.broken_start import clear_broken_start
from wirebroker.pipelines.spark.java_start import OF_SPARK
from wirebroker.segments.loss_report import take_losses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirebroker.base.clock import Clock
    from wirebroker.pipelines.run.job_run import StopRequest

# The data source's error messages within Spark's.
_LOSS: Final = re.compile(r"DataLossError: (.*?); failOnDataLoss=false")
_RECREATED: Final = re.compile(r"RecreatedTopicError: (.*? now has \S+\.)")


@dataclass(frozen=True, kw_only=True)
class ArchiveJob:
    """Settings of an archive."""

    path: str = setting("paths", "log directories, separated by commas")
    topics: str = setting("text", "a Python regular expression for topic names")
    target: str = setting("path", "the archive's folder, also for its progress")
    name: str = setting("text", "the job's name in its output", "archive")
    lost_records: str = setting(
        "text",
        "if records were deleted before they were archived: end with an error, or skip them",
        "stop",
        ("stop", "skip"),
    )
    records_per_batch: int = setting("count", "the maximum offsets per batch", MOST_OFFSETS)
    patience: float = setting("seconds", "how long to retry before giving up", 300.0)
    recreated_topic: str = setting(*RECREATED_TOPIC)
    metrics: str | None = setting("path", "a file for a line of JSON per batch", None)
    log: str | None = setting(
        "path",
        "a file for the output of Spark and librdkafka; default: spark.log in the target",
        None,
    )
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


def run_archive(spark: SparkSession, job: ArchiveJob, stop: StopRequest) -> int:
    """Update an archive and verify it; return 1 if it differs from the log, else 0.

    A requested stop ends the run without verification.

    Raises:
        PipelineError: Records are lost, or the job made no progress for `patience` seconds.
        RecreatedTopicError: As `compare`.
    """
    target = Path(job.target)
    metrics = Path(job.metrics) if job.metrics else None
    clock = SystemClock()
    reporter = Reporter(job.name, metrics, clock, ("batches", "records", "faults"))
    rows = _archive(spark, job, stop, reporter, clock)
    reporter.lost(take_losses(target / "lost"))
    is_stopped = stop.is_requested
    has_none = not rows and not (target / "records").exists()
    pairs = [] if is_stopped or has_none else compare_archive(spark, job)
    sys.stdout.write(f"{rows} records archived\n")
    if is_stopped:
        sys.stdout.write("stopped as requested: the next run continues, and verifies\n")
    wrong = print_comparison(pairs)
    reporter.summary(verified_partitions=len(pairs), wrong_partitions=wrong)
    return 1 if wrong else 0


def _archive(
    spark: SparkSession, job: ArchiveJob, stop: StopRequest, reporter: Reporter, clock: Clock
) -> int:
    rows, got_on = 0, clock.monotonic()
    ticker = WorkTicker(spark.sparkContext, reporter, clock)

    def tell(progress: dict[str, Any]) -> None:
        nonlocal rows, got_on
        rows, got_on = rows + progress["numInputRows"], clock.monotonic()
        reporter.micro_batch(progress)
        ticker.begin("the next batch")

    target = Path(job.target)
    while not stop.is_requested:
        try:
            ticker.begin("the next batch")
            reporter.cleared(clear_broken_start(target / "checkpoint"))
            archive(
                *(spark, job.path, job.topics, target, job.records_per_batch),
                skips_lost=job.lost_records == "skip",
                restarts_recreated=job.recreated_topic == "restart",
                stop=stop,
                tell=tell,
                look=ticker.look,
            )
            break
        except OF_SPARK as error:
            _check_source(error)
            if isinstance(error, AnalysisException) or refusal_in(error):
                raise  # retries would fail as well
            failing_s, why = clock.monotonic() - got_on, first_line(error)
            if failing_s > job.patience:
                raise PatienceError(f"no batch completed for {failing_s:.0f} s: {why}") from error
            reporter.fault(why)
            stop.pause(PAUSE_S)
    return rows


def _check_source(error: Exception) -> None:
    lost = _LOSS.search(str(error))
    if lost:
        raise PipelineError(f'{lost[1]}; lost_records = "skip" continues without them') from error
    recreated = _RECREATED.search(str(error))
    if recreated:
        advice = 'recreated_topic = "restart" archives the new one from its beginning'
        raise PipelineError(f"{recreated[1]} {advice}") from error


def compare_archive(
    spark: SparkSession, job: ArchiveJob
) -> list[tuple[PartitionSummary, PartitionSummary]]:
    """Return the result of `compare`."""
    restarts = job.recreated_topic == "restart"
    return compare(*(spark, job.path, job.topics, Path(job.target)), restarts_recreated=restarts)


def print_comparison(pairs: list[tuple[PartitionSummary, PartitionSummary]]) -> int:
    """Print the summary of each partition; return the number of differing ones."""
    wrong = 0
    for archived, logged in pairs:
        is_same = archived == logged
        wrong += not is_same
        partition = f"{archived.topic}-{archived.partition}"
        sys.stdout.write(
            f"{partition}: {archived.told()}{'' if is_same else ' BUT ' + logged.told()}\n"
        )
    return wrong
