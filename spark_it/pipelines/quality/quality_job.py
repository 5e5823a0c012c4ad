"""The quality job."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from wirebroker.pipelines.delivery.rights import quiet_admin
from wirebroker.pipelines.delivery.source_identity import ids_at_broker
from wirebroker.pipelines.job.errors import PipelineError
from wirebroker.pipelines.job.job_file import setting
from wirebroker.pipelines.quality.group_lag import check_visible, lags_of
from wirebroker.pipelines.quality.quality import existing_topic_ids, existing_topics, look_at
from wirebroker.pipelines.quality.quality_picture import picture_of_quality
from wirebroker.pipelines.quality.quality_report import lines_of_quality, table_of_quality
from wirebroker.segments.errors import recreated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class QualityJob:
    """Settings of a quality report."""

    path: str = setting("paths", "log directories, separated by commas")
    topics: str = setting("text", "a Python regular expression for topic names")
    name: str = setting("text", "the job's name, for Spark", "quality")
    metrics: str | None = setting("path", "a file for the report as lines of JSON", None)
    plot: str | None = setting("path", "a file for a picture, .svg", None)
    kafka: dict[str, Any] = setting(
        "table", "librdkafka settings, to report the lag of groups; default: no lag", {}
    )
    log: str | None = setting(
        "path", "a file for the output of Spark and librdkafka; default: standard error", None
    )
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


def run_quality(spark: SparkSession, job: QualityJob, kafka: dict[str, str]) -> int:
    """Report on topics, with lag if `kafka` is given; return 1 if records were resent, else 0.

    Raises:
        OptionError: A directory is missing, or the pattern is invalid.
        RightError: The login may not describe a topic.
        RecreatedTopicError: The broker has another topic of the same name.
        PipelineError: A request to the broker failed.
    """
    try:
        if kafka:
            check_visible(kafka, existing_topics(job.path, job.topics))
            _check_ids(kafka, job)
        partitions = look_at(spark, job.path, job.topics)
        lags = lags_of(kafka, {partition.topic for partition in partitions}) if kafka else []
    except KafkaException as error:
        address = kafka["bootstrap.servers"]
        raise PipelineError(f"{address}: {error.args[0].str()}") from error
    sys.stdout.writelines(f"{line}\n" for line in table_of_quality(partitions, lags))
    if kafka and not lags:
        sys.stdout.write("no group that the login may describe has offsets here\n")
    for path, lines in (
        (job.metrics, lines_of_quality(partitions, lags)),
        (job.plot, picture_of_quality(partitions, lags)),
    ):
        if path is not None:
            Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return 1 if any(partition.resent for partition in partitions) else 0


def _check_ids(kafka: dict[str, str], job: QualityJob) -> None:
    """Check that directory and broker have the same topics."""
    there = existing_topic_ids(job.path, job.topics)
    at_broker = ids_at_broker(quiet_admin(kafka), there) if there else {}
    for topic, topic_id in at_broker.items():
        if topic_id != there[topic]:
            advice = "Without a broker (--bootstrap, [kafka]) only the directory is checked."
            raise recreated(topic, there[topic], topic_id, advice)
