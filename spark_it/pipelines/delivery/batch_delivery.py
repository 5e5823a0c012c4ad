"""The jobs' delivery for queries of one's own: what `foreachBatch` is given, sent exactly once.

    from wirebroker.pipelines import exactly_once

    send = exactly_once("sales", "sales-job", kafka={"bootstrap.servers": "localhost:9092"},
                        checkpoint="checkpoint")
    table.writeStream.foreachBatch(send).option("checkpointLocation", send.checkpoint).start()

`send` may be called in a function of one's own as well, once in each batch. Source: delivery.py.
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
    """What became of a batch.

    Attributes:
        records: Sent now.
        sent_bytes: Their keys and values.
        slices_sent_before: How many slices, a partition's share each, an earlier attempt had sent.
    """

    records: int
    sent_bytes: int
    slices_sent_before: int


class ExactlyOnce:
    """Sends each batch of a query into a topic once; made by `exactly_once`.

    Attributes:
        checkpoint: For the query's option `checkpointLocation`.
    """

    def __init__(self, target: Target, folder: JobFolder) -> None:
        self.checkpoint = folder.spark
        self._target = target
        self._delivery = Delivery(target, folder)

    def __call__(self, table: DataFrame, batch: int) -> BatchSent:
        """Send a batch, or what of it was not sent.

        Args:
            table: With the columns of Spark's Kafka sink: `value`, and if wanted `key`, `headers`,
                `partition` and `timestamp`. A batch that is done again must have the same rows.
            batch: Its number, as `foreachBatch` gives it.

        Raises:
            JobFileError: The columns.
            PositionError: The topic's positions and the checkpoint do not go together.
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
            sum(each.records for each in sent),
            sum(each.sent_bytes for each in sent),
            sum(each.was_sent for each in sent),
        )

    def close(self) -> None:
        """Leave the broker; a further batch connects again."""
        self._delivery.close()


def exactly_once(
    topic: str,
    name: str,
    *,
    kafka: Mapping[str, Any],
    checkpoint: str | Path,
    partitions: int = 1,
) -> ExactlyOnce:
    """Return what sends each batch of a query into a topic once, however often it is done again.

    Args:
        topic: The topic; made if it is not there.
        name: Of the query: no other may have it. Its positions are offsets of a group of the name.
        kafka: Settings of librdkafka; `bootstrap.servers` at least.
        checkpoint: A folder of the query's own, kept between runs.
        partitions: Of the topic, where it is made.

    Raises:
        JobFileError: A setting.
        PositionError: The folder is another query's.
        RightError: The login lacks a right.
        PipelineError: The broker refuses, or there is none.
    """
    for what, text in (("topic", topic), ("name", name)):
        if not isinstance(text, str) or not text:
            raise JobFileError(f"exactly_once: {what} = {text!r} is no name")
    settings = kafka_settings(Path("exactly_once"), dict(kafka))
    target = Target(settings, name, topic, "", partitions)
    folder = folder_of(str(checkpoint))
    make_topics(target)
    return ExactlyOnce(target, JobFolder(folder, name, topic))
