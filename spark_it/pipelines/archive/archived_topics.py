"""Selection of an archive's records by topic id.

Records from before archives stored ids have the id UNKNOWN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions

from wirebroker.pipelines.job.errors import PipelineError
from wirebroker.segments.errors import RecreatedTopicError, recreated
from wirebroker.segments.log_directories import LogDirectories, topic_ids
from wirebroker.segments.options import parse_options

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

UNKNOWN: Final = "unknown"


class _ArchivedTopic(NamedTuple):
    topic: str
    topic_id: str
    records: int


def of_the_log(
    spark: SparkSession, table: DataFrame, path: str, topics: str, *, restarts_recreated: bool
) -> DataFrame:
    """Return an archive's records without those of deleted topics that were recreated.

    Raises:
        RecreatedTopicError: The archive lacks records of the new topic; not if
            `restarts_recreated`.
    """
    options = parse_options({"path": path, "subscribePattern": topics}, is_stream=False)
    ids = topic_ids(LogDirectories(options.directories).find(options.wants))
    archived_ids: dict[str, list[str]] = {}
    for row in _archived_topics(table):
        archived_ids.setdefault(row.topic, []).append(row.topic_id)
    for topic, old_ids in archived_ids.items():
        current_id = ids.get(topic, UNKNOWN)
        if (
            current_id not in old_ids
            and UNKNOWN not in (current_id, *old_ids)
            and not restarts_recreated
        ):
            raise recreated(topic, ", ".join(old_ids), current_id, "Use another archive for it.")
    of_log = spark.createDataFrame(list(ids.items()), "topic string, logId string")
    joined = table.join(functions.broadcast(of_log), "topic", "left")
    return joined.where("topicId IS NULL OR logId IS NULL OR topicId = logId").drop("logId")


def of_chosen_ids(table: DataFrame, chosen: Collection[str]) -> DataFrame:
    """Return an archive's records; for recreated topics, only those of the chosen ids.

    Raises:
        RecreatedTopicError: The archive has several ids of a topic, and none is chosen.
        PipelineError: No record has one of the chosen ids.
    """
    rows_by_topic: dict[str, list[_ArchivedTopic]] = {}
    for row in _archived_topics(table):
        rows_by_topic.setdefault(row.topic, []).append(row)
    missing = set(chosen) - {row.topic_id for rows in rows_by_topic.values() for row in rows}
    if missing:
        raise PipelineError(f"topic_ids: no record of the archive has the topic id {min(missing)}")
    left_out = functions.lit(False)
    for topic, rows in rows_by_topic.items():
        if sum(row.topic_id != UNKNOWN for row in rows) < 2:
            continue
        chosen_ids = [row.topic_id for row in rows if row.topic_id in chosen]
        if not chosen_ids:
            raise _several(topic, rows)
        id_column = functions.coalesce("topicId", functions.lit(UNKNOWN))
        left_out |= (functions.col("topic") == topic) & ~id_column.isin(chosen_ids)
    return table.where(~left_out)


def _several(topic: str, rows: Collection[_ArchivedTopic]) -> RecreatedTopicError:
    ids_text = ", ".join(f"{row.topic_id} ({row.records} records)" for row in rows)
    return RecreatedTopicError(
        f"topic {topic} was recreated while it was archived, so the archive has offsets twice: "
        f"it has the topic ids {ids_text}. Choose one to restore with topic_ids or --topic-ids"
    )


def _archived_topics(table: DataFrame) -> list[_ArchivedTopic]:
    id_column = functions.coalesce("topicId", functions.lit(UNKNOWN))
    counted = table.groupBy("topic", id_column.alias("id")).agg(functions.count("*"))
    return [_ArchivedTopic(*row) for row in counted.orderBy("topic", "id").collect()]
