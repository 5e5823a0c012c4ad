"""Base class of the jobs that write into a topic."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from wirebroker.pipelines.delivery.delivery import Delivery
from wirebroker.pipelines.delivery.source_identity import SourceIdentity
from wirebroker.pipelines.spark.broken_start import clear_broken_start

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from wirebroker.base.clock import Clock
    from wirebroker.pipelines.delivery.delivery import Target
    from wirebroker.pipelines.delivery.slice_sender import SliceSent
    from wirebroker.pipelines.job.job_folder import BatchPlan, JobFolder
    from wirebroker.pipelines.run.reporter import Reporter
    from wirebroker.pipelines.source.source_table import SourceOptions


class PacedJob(Protocol):
    """Settings with a job's name and pace."""

    @property
    def name(self) -> str:
        """The job's name."""

    @property
    def every(self) -> float | None:
        """Seconds between checks of the source; None reads it once."""


J = TypeVar("J", bound=PacedJob)


class Pipeline(Generic[J]):
    """A job: a Spark stream that goes to a topic, batch by batch."""

    def __init__(
        self,
        spark: SparkSession,
        job: J,
        target: Target,
        checkpoint: JobFolder,
        *,
        reporter: Reporter,
        clock: Clock,
    ) -> None:
        self._spark = spark
        self._job = job
        self._target = target
        self._checkpoint = checkpoint
        self._delivery = Delivery(target, checkpoint)
        self._reporter = reporter
        self._clock = clock
        source = self.source_of(job, target)
        restarts = getattr(job, "recreated_topic", "stop") == "restart"
        self._identity = source and SourceIdentity(
            source, target.kafka, checkpoint, restarts=restarts
        )

    @staticmethod
    def source_of(_: Any, __: Target) -> SourceOptions | None:
        """Return the source of a job that reads a topic, else None."""
        return None

    def close(self) -> None:
        """Disconnect."""
        self._delivery.close()

    def note(self, _: dict[str, Any]) -> None:
        """Count from Spark's progress report of a batch."""

    def look(self) -> None:
        """Prepare new input; called repeatedly while the query runs."""

    def summary_fields(self) -> dict[str, Any]:
        """Return additional fields for the summary."""
        return {}

    def _send(self, placed: DataFrame, plan: BatchPlan) -> list[SliceSent]:
        read = self._identity.read_topic() if self._identity is not None else None
        return self._delivery.send(placed, plan, read)

    def _stream(self, table: DataFrame, handle: Callable[[DataFrame, int], None]) -> StreamingQuery:
        job = self._job
        self._follow_source()
        self._reporter.cleared(clear_broken_start(Path(self._checkpoint.spark)))
        writer = table.writeStream.foreachBatch(partial(self._do, handle)).queryName(job.name)
        writer = writer.option("checkpointLocation", self._checkpoint.spark)
        if job.every is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{job.every} seconds").start()

    def _do(self, handle: Callable[[DataFrame, int], None], table: DataFrame, batch: int) -> None:
        if self._identity is not None:
            self._identity.check()
        handle(table, self._checkpoint.first_batch + batch)

    def _follow_source(self) -> None:
        topic_id = self._identity.find_restart() if self._identity is not None else ""
        if self._identity is not None and topic_id:
            self._reporter.fault(self._identity.told(topic_id))
            self._delivery.skip_begun()
            self._checkpoint.restart(topic_id)
