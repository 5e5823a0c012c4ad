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
    wish = parse_options({"path": path, "subscribePattern": topics}, is_stream=False)
    ids = topic_ids(LogDirectories(wish.directories).find(wish.wants))
    known: dict[str, list[str]] = {}
    for each in _archived_topics(table):
        known.setdefault(each.topic, []).append(each.topic_id)
    for topic, found in known.items():
        now = ids.get(topic, UNKNOWN)
        if now not in found and UNKNOWN not in (now, *found) and not restarts_recreated:
            raise recreated(topic, ", ".join(found), now, "Name another archive for it.")
    of_log = spark.createDataFrame(list(ids.items()), "topic string, logId string")
    joined = table.join(functions.broadcast(of_log), "topic", "left")
    return joined.where("topicId IS NULL OR logId IS NULL OR topicId = logId").drop("logId")


def of_chosen_ids(table: DataFrame, chosen: Collection[str]) -> DataFrame:
    """Return an archive's records; for recreated topics, only those of the chosen ids.

    Raises:
        RecreatedTopicError: The archive has several ids of a topic, and none is chosen.
        PipelineError: No record has one of the chosen ids.
    """
    known: dict[str, list[_ArchivedTopic]] = {}
    for each in _archived_topics(table):
        known.setdefault(each.topic, []).append(each)
    missing = set(chosen) - {each.topic_id for found in known.values() for each in found}
    if missing:
        raise PipelineError(f"topic_ids: no record of the archive has the topic id {min(missing)}")
    left_out = functions.lit(False)
    for topic, found in known.items():
        if sum(each.topic_id != UNKNOWN for each in found) < 2:
            continue
        wanted = [each.topic_id for each in found if each.topic_id in chosen]
        if not wanted:
            raise _several(topic, found)
        given = functions.coalesce("topicId", functions.lit(UNKNOWN))
        left_out |= (functions.col("topic") == topic) & ~given.isin(wanted)
    return table.where(~left_out)


def _several(topic: str, found: Collection[_ArchivedTopic]) -> RecreatedTopicError:
    told = ", ".join(f"{each.topic_id} ({each.records} records)" for each in found)
    return RecreatedTopicError(
        f"topic {topic} was recreated while it was archived, so offsets are in the archive twice: "
        f"the archive has the topic ids {told}. Name the one to restore: topic_ids, --topic-ids"
    )


def _archived_topics(table: DataFrame) -> list[_ArchivedTopic]:
    given = functions.coalesce("topicId", functions.lit(UNKNOWN))
    counted = table.groupBy("topic", given.alias("id")).agg(functions.count("*"))
    return [_ArchivedTopic(*row) for row in counted.orderBy("topic", "id").collect()]
