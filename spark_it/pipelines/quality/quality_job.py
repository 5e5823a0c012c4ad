"""The quality job: its settings, table, picture and metrics.

It stores nothing and writes only at its end, so it can be interrupted.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape

from confluent_kafka import KafkaException

from wirebroker.pipelines.delivery.rights import quiet_admin
from wirebroker.pipelines.delivery.source_identity import ids_at_broker
from wirebroker.pipelines.job.errors import PipelineError
from wirebroker.pipelines.job.job_file import setting
from wirebroker.pipelines.quality.group_lag import check_visible, lags_of
from wirebroker.pipelines.quality.quality import existing_topic_ids, existing_topics, look_at
from wirebroker.segments.errors import recreated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from wirebroker.pipelines.quality.group_lag import PartitionLag
    from wirebroker.pipelines.quality.quality import PartitionQuality


@dataclass(frozen=True, kw_only=True)
class QualityJob:
    """Settings of a quality report, from its file or flags."""

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
    """Report on topics, with lag if `kafka` is not empty; return 1 if records were resent, else 0.

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


# An SVG of the quality report: records of each partition, and lag of groups

_WIDTH: Final = 640
_LEFT: Final = 150  # where bars begin
_ROOM: Final = 350  # for the longest bar
_LINE: Final = 20
_GOOD, _BAD, _LAG = "#4878a8", "#c44e52", "#8c8c8c"
_STYLE: Final = "font-family='sans-serif' font-size='12'"


def picture_of_quality(
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return an SVG's lines: a bar for each partition, red if it has resent records.

    Gray bars show the lag of groups on the same scale.
    """
    bars = list(_bars(partitions, lags))
    height = (len(bars) + 1) * _LINE
    yield (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' {_STYLE}>"
        f"<rect width='{_WIDTH}' height='{height}' fill='white'/>"
    )
    for line, (label, share, colour, text) in enumerate(bars, 1):
        y = line * _LINE
        if not colour:
            yield f"<text x='8' y='{y}' font-weight='bold'>{escape(label)}</text>"
            continue
        width = round(share * _ROOM)
        yield f"<text x='{_LEFT - 8}' y='{y}' text-anchor='end'>{escape(label)}</text>"
        yield f"<rect x='{_LEFT}' y='{y - 11}' width='{width}' height='13' fill='{colour}'/>"
        yield f"<text x='{_LEFT + width + 6}' y='{y}'>{escape(text)}</text>"
    yield "</svg>"


def _bars(
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[tuple[str, float, str, str]]:
    """Yield each line's label, share of the longest, color ("" for a heading) and text."""
    for topic in dict.fromkeys(partition.topic for partition in partitions):
        topic_partitions = [partition for partition in partitions if partition.topic == topic]
        topic_lags = [lag for lag in lags if lag.topic == topic]
        largest = max(
            [
                *(partition.records for partition in topic_partitions),
                *(lag.lag for lag in topic_lags),
                1,
            ]
        )
        yield f"{topic}: records of each partition", 0, "", ""
        for partition in topic_partitions:
            details = [f"{partition.records:,}"]
            details += [f"{partition.gaps:,} gaps"] if partition.gaps else []
            details += [f"{partition.resent:,} resent"] if partition.resent else []
            colour = _BAD if partition.resent else _GOOD
            yield (
                f"partition {partition.partition}",
                partition.records / largest,
                colour,
                ", ".join(details),
            )
        for lag in topic_lags:
            label = f"{lag.group}, {lag.partition}"
            yield _cut(label), lag.lag / largest, _LAG, f"{lag.lag:,} behind"


def _cut(label: str) -> str:
    return label if len(label) <= 20 else f"…{label[-19:]}"


# The quality report as a table with bars and as JSON lines

_BAR_CHARACTERS: Final = 30
_TITLES: Final = (
    *("partition", "records", "bytes", "offsets", "gaps", "resent", "keys", "again", "rate/s"),
    "share of records",
)


def table_of_quality(
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return the report's lines: each topic's skew, table and lag."""
    for topic in dict.fromkeys(partition.topic for partition in partitions):
        topic_partitions = [partition for partition in partitions if partition.topic == topic]
        records = sum(partition.records for partition in topic_partitions)
        yield f"{topic}: {records} records, skew {skew_of(topic_partitions):.2f}"
        yield from _aligned(
            [_TITLES, *(_cells(partition, topic_partitions) for partition in topic_partitions)]
        )
        for lag in lags:
            if lag.topic == topic:
                yield f"  group {lag.group}, partition {lag.partition}: lag {lag.lag}"
        yield ""


def lines_of_quality(
    partitions: Sequence[PartitionQuality], lags: Sequence[PartitionLag]
) -> Iterator[str]:
    """Return a line of JSON for each partition, topic and lag."""
    for partition in partitions:
        derived = {
            "gaps": partition.gaps,
            "repeated_keys": partition.keyed - partition.keys,
            "rate": partition.rate,
        }
        yield json.dumps({"kind": "partition", **partition._asdict(), **derived})
    for topic in dict.fromkeys(partition.topic for partition in partitions):
        skew = skew_of([partition for partition in partitions if partition.topic == topic])
        yield json.dumps({"kind": "topic", "topic": topic, "skew": skew})
    for lag in lags:
        yield json.dumps({"kind": "lag", **lag._asdict(), "lag": lag.lag})


def skew_of(partitions: Sequence[PartitionQuality]) -> float:
    """Return the largest partition's records divided by the mean; 0 without records."""
    total = sum(partition.records for partition in partitions)
    return (
        max(partition.records for partition in partitions) * len(partitions) / total
        if total
        else 0.0
    )


def _cells(
    partition: PartitionQuality, all_of_topic: Sequence[PartitionQuality]
) -> tuple[str, ...]:
    largest = max(other.records for other in all_of_topic) or 1
    return (
        f"{partition.partition}",
        f"{partition.records}",
        f"{partition.value_bytes}",
        f"{partition.first_offset}-{partition.last_offset}" if partition.records else "-",
        f"{partition.gaps}",
        f"{partition.resent}",
        f"{partition.keys}",
        f"{partition.keyed - partition.keys}",
        f"{partition.rate:,.1f}",
        "#" * round(partition.records * _BAR_CHARACTERS / largest),
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *numbers, bar in rows:
        cells = (cell.rjust(width) for cell, width in zip(numbers, widths, strict=False))
        yield "  " + "  ".join((*cells, bar)).rstrip()
