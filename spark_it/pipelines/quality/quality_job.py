"""The quality job: its settings, table, picture and metrics.

It stores nothing and writes only at its end, so it can be interrupted.
"""

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
from wirebroker.pipelines.quality.quality import look_at, topic_ids_there, topics_there
from wirebroker.pipelines.quality.quality_picture import picture_of_quality
from wirebroker.pipelines.quality.quality_report import lines_of_quality, table_of_quality
from wirebroker.segments.errors import recreated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class QualityJob:
    """Settings of a quality report, from its file or flags."""

    path: str = setting("paths", "log directories, comma between")
    topics: str = setting("text", "a pattern of topics, Python's")
    name: str = setting("text", "the job's name, for Spark", "quality")
    metrics: str | None = setting("path", "a file that lines of JSON are written to", None)
    plot: str | None = setting("path", "a picture to write, .svg", None)
    kafka: dict[str, Any] = setting(
        "table", "settings of librdkafka, to tell the lag of groups; none: it is not told", {}
    )
    log: str | None = setting(
        "path", "for what Spark and librdkafka print; none: standard error", None
    )
    spark: dict[str, Any] = setting("table", "settings of Spark", {})


def run_quality(spark: SparkSession, job: QualityJob, kafka: dict[str, str]) -> int:
    """Report on topics, with lag if `kafka` is not empty; return 1 if records were resent, else 0.

    Raises:
        OptionError: A directory is missing, or the pattern is invalid.
        RightError: The login may not describe a topic.
        RecreatedTopicError: The broker has another topic of the same name.
        PipelineError: A request to the broker failed.
    """
    try:
        if kafka:
            check_visible(kafka, topics_there(job.path, job.topics))
            _check_ids(kafka, job)
        found = look_at(spark, job.path, job.topics)
        lags = lags_of(kafka, {each.topic for each in found}) if kafka else []
    except KafkaException as error:
        address = kafka["bootstrap.servers"]
        raise PipelineError(f"{address}: {error.args[0].str()}") from error
    sys.stdout.writelines(f"{line}\n" for line in table_of_quality(found, lags))
    if kafka and not lags:
        sys.stdout.write("no group has offsets here, or none that the login may describe\n")
    for path, lines in (
        (job.metrics, lines_of_quality(found, lags)),
        (job.plot, picture_of_quality(found, lags)),
    ):
        if path is not None:
            Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return 1 if any(each.resent for each in found) else 0


def _check_ids(kafka: dict[str, str], job: QualityJob) -> None:
    """Check that directory and broker have the same topics."""
    there = topic_ids_there(job.path, job.topics)
    at_broker = ids_at_broker(quiet_admin(kafka), there) if there else {}
    for topic, topic_id in at_broker.items():
        if topic_id != there[topic]:
            advice = "Without a broker (--bootstrap, [kafka]) the directory alone is looked at."
            raise recreated(topic, there[topic], topic_id, advice)
