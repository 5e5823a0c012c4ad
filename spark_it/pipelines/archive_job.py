"""An archive as a job: its settings, its run with what it tells, and what it is verified to be."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebroker.clock import SystemClock
from wirebroker.pipelines.archive import MOST_OFFSETS, PartitionSummary, archive, compare
from wirebroker.pipelines.job_file import RECREATED_TOPIC, setting
from wirebroker.pipelines.reporter import Reporter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirebroker.pipelines.job_run import StopWish


@dataclass(frozen=True, kw_only=True)
class ArchiveJob:
    """The settings of an archive, as its file or flags have them."""

    path: str = setting("paths", "log directories, comma between")
    topics: str = setting("text", "a pattern of topics, Python's")
    target: str = setting("path", "the archive's folder, which keeps how far it goes, too")
    name: str = setting("text", "the job's name, for what it tells", "archive")
    records_per_batch: int = setting("count", "how many offsets make a batch at most", MOST_OFFSETS)
    recreated_topic: str = setting(*RECREATED_TOPIC)
    metrics: str | None = setting("path", "a file that a line of JSON is added to each batch", None)
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


def run_archive(spark: SparkSession, job: ArchiveJob, stop: StopWish) -> int:
    """Bring an archive up to date and verify it; return 1 if it is not what the log is, else 0.

    An end that is asked for comes behind the micro-batch at work, and nothing is verified then.

    Raises:
        StreamingQueryException: As `archive`.
        RecreatedTopicError: As `compare`.
    """
    target = Path(job.target)
    metrics = Path(job.metrics) if job.metrics else None
    reporter = Reporter(job.name, metrics, SystemClock(), ("batches", "records"))
    rows = archive(
        *(spark, job.path, job.topics, target, job.records_per_batch),
        restarts_recreated=job.recreated_topic == "restart",
        stop=stop,
        tell=reporter.micro_batch,
    )
    is_stopped = stop.is_asked
    has_none = not rows and not (target / "records").exists()
    pairs = [] if is_stopped or has_none else compare_archive(spark, job)
    sys.stdout.write(f"{rows} records archived\n")
    if is_stopped:
        sys.stdout.write("the end was asked for: the next run goes on, and verifies\n")
    wrong = tell_pairs(pairs)
    reporter.summary(verified_partitions=len(pairs), wrong_partitions=wrong)
    return 1 if wrong else 0


def compare_archive(
    spark: SparkSession, job: ArchiveJob
) -> list[tuple[PartitionSummary, PartitionSummary]]:
    """Return what `compare` does."""
    restarts = job.recreated_topic == "restart"
    return compare(*(spark, job.path, job.topics, Path(job.target)), restarts_recreated=restarts)


def tell_pairs(pairs: list[tuple[PartitionSummary, PartitionSummary]]) -> int:
    """Tell what each partition comes to in an archive; return in how many the log differs."""
    wrong = 0
    for archived, logged in pairs:
        is_same = archived == logged
        wrong += not is_same
        place = f"{archived.topic}-{archived.partition}"
        sys.stdout.write(
            f"{place}: {archived.told()}{'' if is_same else ' BUT ' + logged.told()}\n"
        )
    return wrong
