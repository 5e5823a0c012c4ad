"""The restore job."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebroker.pipelines.archive.broker_restore import restore_to_broker
from wirebroker.pipelines.archive.restore import restore
from wirebroker.pipelines.job.errors import JobFileError, PipelineError
from wirebroker.pipelines.job.job_file import kafka_settings_if_any, setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class RestoreJob:
    """Settings of a restore."""

    target: str = setting("path", "the archive's folder")
    into: str | None = setting("path", "a folder for partitions' logs; existing ones stay", None)
    map: str | None = setting(
        "path", "for a broker: allow other offsets; a file for old and new ones", None
    )
    topic_ids: str = setting(
        "text", "topic ids to restore of recreated topics, separated by commas", ""
    )
    kafka: dict[str, Any] = setting(
        "table", "a broker instead of a folder: librdkafka settings", {}
    )
    log: str | None = setting(
        "path",
        "a file for the output of Spark and librdkafka; default: spark.log in the target",
        None,
    )
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


def restore_settings(file: Path, job: RestoreJob) -> dict[str, str]:
    """Return the client settings for a restore into a broker; empty for a folder.

    Raises:
        JobFileError: bootstrap.servers is missing, or not exactly one destination is given.
    """
    if bool(job.kafka) == (job.into is not None):
        raise JobFileError(
            "give either a folder (--into, or into in the file) or a broker (--bootstrap, "
            "or [kafka])"
        )
    if job.map is not None and not job.kafka:
        raise JobFileError("map needs a broker: a folder keeps the offsets")
    return kafka_settings_if_any(file, job.kafka)


def run_restore(spark: SparkSession, job: RestoreJob, kafka: dict[str, str]) -> int:
    """Restore an archive; print each partition and return 0.

    Raises:
        FolderExistsError, RecreatedTopicError: As `restore`.
        PipelineError: As `restore_to_broker`; or writing failed.
    """
    target = Path(job.target)
    ids = [topic_id.strip() for topic_id in job.topic_ids.split(",") if topic_id.strip()]
    restored = (
        restore_to_broker(spark, target, kafka, None if job.map is None else Path(job.map), ids)
        if job.into is None
        else restore(spark, target, Path(job.into), ids)
    )
    try:
        for partition, count in restored:
            sys.stdout.write(f"{partition}: {count} records\n")
    except OSError as error:
        raise PipelineError(str(error)) from error
    return 0
