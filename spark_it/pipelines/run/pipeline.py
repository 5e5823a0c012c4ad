"""What the jobs that deliver into a topic have in common."""

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
    from wirebroker.pipelines.source.source_table import SourceWish


class PacedJob(Protocol):
    """Settings that tell a job's name and pace."""

    @property
    def name(self) -> str:
        """The job's name."""

    @property
    def every(self) -> float | None:
        """From one look at the source to the next, in seconds; None: once, to its end."""


J = TypeVar("J", bound=PacedJob)


class Pipeline(Generic[J]):
    """One job: a stream of Spark's that goes to a topic, batch by batch.

    Args:
        spark: The session.
        job: Its settings.
        target: Where to.
        checkpoint: Its folder.
        reporter: Is told of batches.
        clock: For how long they take.
    """

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
    def source_of(_: Any, __: Target) -> SourceWish | None:
        """Return where the job reads its topic; None if it reads none."""
        return None

    def close(self) -> None:
        """Leave the broker."""
        self._delivery.close()

    def note(self, _: dict[str, Any]) -> None:
        """Count what Spark says of a batch; most jobs know it by their slices."""

    def look(self) -> None:
        """Prepare new input for the query; called repeatedly while it runs."""

    def told_at_end(self) -> dict[str, Any]:
        """Return fields for the summary besides the totals of batches."""
        return {}

    def _send(self, placed: DataFrame, plan: BatchPlan) -> list[SliceSent]:
        """Send a batch's placed rows, as `Delivery.send`."""
        read = self._identity.read_topic() if self._identity is not None else None
        return self._delivery.send(placed, plan, read)

    def _stream(self, table: DataFrame, handle: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """Start the query of a table: at the job's pace, by the positions in its folder.

        Raises:
            RecreatedTopicError: The source's topic was recreated, and the job does not restart.
        """
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
        """Restart with the source's new topic if it was recreated and the job allows that."""
        topic_id = self._identity.find_restart() if self._identity is not None else ""
        if self._identity is not None and topic_id:
            self._reporter.fault(self._identity.told(topic_id))
            self._delivery.skip_begun()
            self._checkpoint.restart(topic_id)
