"""Exactly-once delivery for queries other than the jobs', by `foreachBatch`.

    from wirebroker.pipelines import exactly_once

    send = exactly_once("sales", "sales-job", kafka={"bootstrap.servers": "localhost:9092"},
                        checkpoint="checkpoint")
    table.writeStream.foreachBatch(send).option("checkpointLocation", send.checkpoint).start()

Your own function may also call `send`, once for each batch. Source: delivery.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaException
from pyspark.errors import PySparkException

from wirebroker.pipelines.delivery.delivery import Delivery, Target, folder_of, make_topics
from wirebroker.pipelines.delivery.rights import refusal_of
from wirebroker.pipelines.delivery.sink_rows import check_columns, placed_rows
from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import kafka_settings
from wirebroker.pipelines.job.job_folder import JobFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


class BatchSent(NamedTuple):
    """The result of sending a batch.

    Attributes:
        records: Sent now.
        sent_bytes: Keys and values.
        slices_sent_before: Slices (one for each partition) that an earlier attempt sent.
    """

    records: int
    sent_bytes: int
    slices_sent_before: int


class ExactlyOnce:
    """Sender of a query's batches; created by `exactly_once`.

    Attributes:
        checkpoint: For the query's option `checkpointLocation`.
    """

    def __init__(self, target: Target, folder: JobFolder) -> None:
        self.checkpoint = folder.spark
        self._target = target
        self._delivery = Delivery(target, folder)

    def __call__(self, table: DataFrame, batch: int) -> BatchSent:
        """Send the part of a batch that was not sent before.

        Args:
            table: The columns of Spark's Kafka sink: `value`, optionally `key`, `headers`,
                `partition` and `timestamp`. A repeated batch must have the same rows.
            batch: The number from `foreachBatch`.

        Raises:
            JobFileError: The columns are wrong.
            PositionError: The topic's positions and the checkpoint do not match.
            RightError: The login lacks a right.
            KafkaException, PySparkException: The broker or a task failed; start the query again.
        """
        check_columns(table.schema)
        try:
            plan = self._delivery.plan(batch)
            sent = self._delivery.send(placed_rows(table, self._target.topic, plan), plan)
        except (KafkaException, PySparkException) as error:
            explained = refusal_of(error, self._target, {})
            if explained is None:
                raise
            raise explained from error
        return BatchSent(
            sum(result.records for result in sent),
            sum(result.sent_bytes for result in sent),
            sum(result.was_sent for result in sent),
        )

    def close(self) -> None:
        """Disconnect; a further batch connects again."""
        self._delivery.close()


def exactly_once(
    topic: str,
    name: str,
    *,
    kafka: Mapping[str, Any],
    checkpoint: str | Path,
    partitions: int = 1,
) -> ExactlyOnce:
    """Return a function that sends each batch of a query to a topic exactly once.

    Args:
        topic: The topic; created if missing.
        name: The query's unique name, also of the group for its positions.
        kafka: librdkafka's settings, at least `bootstrap.servers`.
        checkpoint: A folder for this query only, kept between runs.
        partitions: Used if the topic is created.

    Raises:
        JobFileError: A setting is wrong.
        PositionError: The folder belongs to another query.
        RightError: The login lacks a right.
        PipelineError: The broker refuses or cannot be reached.
    """
    for parameter, text in (("topic", topic), ("name", name)):
        if not isinstance(text, str) or not text:
            raise JobFileError(f"exactly_once: {parameter} = {text!r} is not a name")
    settings = kafka_settings(Path("exactly_once"), dict(kafka))
    target = Target(settings, name, topic, "", partitions)
    folder = folder_of(str(checkpoint))
    make_topics(target)
    return ExactlyOnce(target, JobFolder(folder, name, topic))
