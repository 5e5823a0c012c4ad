"""Exactly-once delivery of micro-batches to Kafka, in slices of one transaction each.

A job plans a batch, converts its input to placed rows by the plan, and sends them in Spark tasks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from pyspark import TaskContext

from wirebroker.pipelines.delivery.positions import NOWHERE, WAIT_S, CachedPositions, Positions
from wirebroker.pipelines.delivery.rights import (
    Right,
    RightError,
    check_rights,
    error_of,
    is_refusal,
    quiet_admin,
)
from wirebroker.pipelines.delivery.slice_sender import (
    SENT_COLUMNS,
    SliceOptions,
    SliceSent,
    end_open_transaction,
    lost_position,
    send_slice,
)
from wirebroker.pipelines.job.errors import JobFileError, PipelineError, PositionError
from wirebroker.pipelines.job.job_file import like
from wirebroker.pipelines.job.job_folder import BatchPlan
from wirebroker.pipelines.rows.placed_batches import from_batches
from wirebroker.pipelines.rows.placed_rows import SOURCE_ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from wirebroker.pipelines.delivery.source_identity import ReadTopic
    from wirebroker.pipelines.job.job_folder import JobFolder


class Target(NamedTuple):
    """The destination of a job's records.

    `dead_letters` is a topic or "". `partitions` is used if the topic is created.
    """

    kafka: dict[str, str]
    job: str
    topic: str
    dead_letters: str
    partitions: int


class Delivery:
    """Sender of a job's batches."""

    def __init__(self, target: Target, checkpoint: JobFolder) -> None:
        self._target = target
        self._checkpoint = checkpoint
        self._positions = CachedPositions()

    def close(self) -> None:
        """Disconnect."""
        self._positions.close()

    def plan(self, batch: int, extra_values: Callable[[], dict[str, Any]] = dict) -> BatchPlan:
        """Return a batch's plan, which repeated attempts reuse, with `extra_values` if it is new.

        Raises:
            PositionError: Positions and checkpoint do not match.
            KafkaException: A request failed.
        """
        target = self._target
        saved_plan = self._checkpoint.find(batch)
        of = (target.kafka, target.job, target.topic, self._checkpoint.identity)
        if saved_plan is not None:
            # A stable read would wait for a transaction that an interrupted attempt left open.
            with Positions(*of, stable=False) as positions:
                self._check(positions.read(range(saved_plan.partitions)), saved_plan, sent_before=1)
            return saved_plan
        with self._positions.lend(*of) as positions:
            partitions = positions.partition_count(target.topic)
            dead = positions.partition_count(target.dead_letters) if target.dead_letters else 0
            plan = BatchPlan(batch, partitions, dead, extra_values())
            slice_positions = positions.read(range(partitions))
            missing = {
                number: batch for number, position in slice_positions.items() if position == NOWHERE
            }
            self._check(slice_positions | missing, plan, sent_before=0)
            if missing:
                positions.write(missing)
        self._checkpoint.keep(plan)
        return plan

    def skip_begun(self) -> None:
        """Move all positions past the last begun batch; raise as `plan`."""
        target, last = self._target, self._checkpoint.last_begun()
        if last < 0:
            return
        of = (target.kafka, target.job, target.topic, self._checkpoint.identity)
        with Positions(*of, stable=False) as positions:
            slices = range(positions.partition_count(target.topic))
            positions.read(slices)  # refuses positions of another checkpoint
            for number in slices:
                end_open_transaction(SliceOptions(*of, last), number)
            positions.write(dict.fromkeys(slices, last + 1))

    def send(
        self, placed: DataFrame, plan: BatchPlan, read: ReadTopic | None = None
    ) -> list[SliceSent]:
        """Send placed rows, which come from the topic `read`; return the result of each slice.

        Raises:
            PySparkException: A task failed; repeat the batch.
        """
        target = self._target
        settings = SliceOptions(
            target.kafka, target.job, target.topic, self._checkpoint.identity, plan.batch
        )
        slices = placed.repartitionById(plan.partitions, "slice")
        sent = slices.sortWithinPartitions(*SOURCE_ORDER).mapInArrow(
            _Sender(settings, read), SENT_COLUMNS
        )
        return [SliceSent(*row) for row in sent.collect()]

    def _check(self, slice_positions: dict[int, int], plan: BatchPlan, *, sent_before: int) -> None:
        job, topic = self._target.job, self._target.topic
        for number, position in slice_positions.items():
            if position == NOWHERE:
                raise lost_position(job, topic, number)
            # One ahead: the slice was sent before. None is behind, because Spark begins a batch
            # after the previous one.
            if not plan.batch <= position <= plan.batch + sent_before:
                raise PositionError(
                    f"group {job} is at batch {position} of {topic} (slice {number}), the "
                    f"checkpoint at {plan.batch}: one of them was reset"
                )


# One for each Spark worker.
_positions: Final = CachedPositions()


class _Sender:
    """The Spark task that sends a slice."""

    def __init__(self, settings: SliceOptions, read: ReadTopic | None) -> None:
        self._arguments = settings
        self._read = read

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if self._read is not None:
            # A shuffle precedes slices, so Spark has read the whole batch.
            self._read.check()
        settings, rows = self._arguments, from_batches(batches)
        with _positions.lend(
            settings.kafka, settings.job, settings.topic, settings.identity
        ) as positions:
            sent = send_slice(settings, context.partitionId(), rows, positions)
        yield pyarrow.RecordBatch.from_pylist([sent._asdict()])


def make_topics(target: Target, sources: Iterable[str] = ()) -> None:
    """Create missing topics and check the job's rights; `sources` must already exist.

    Raises:
        RightError: A right is missing.
        PipelineError: The broker refuses or cannot be reached, or a source does not exist.
    """
    partition_counts = {target.topic: target.partitions}
    if target.dead_letters:
        partition_counts[target.dead_letters] = 1
    try:
        missing = _missing_topics(target, partition_counts, sources)
        check_rights(target)
        if missing:
            new = [NewTopic(name, partition_counts[name]) for name in missing]
            create_topics(target.kafka, new, may_be_there=True)
            check_rights(target)
    except KafkaException as error:
        message, address = error.args[0].str(), target.kafka["bootstrap.servers"]
        raise PipelineError(f"[kafka], bootstrap.servers {address}: {message}") from error


def _missing_topics(target: Target, topics: Iterable[str], sources: Iterable[str]) -> list[str]:
    with Positions(target.kafka, target.job, target.topic, "") as positions:
        for name in sources:
            if not positions.partition_count(name):
                existing = [topic for topic in positions.topics() if topic not in topics]
                raise JobFileError(f"there is no topic {name}{like(name, existing)}")
        try:
            return [name for name in topics if not positions.partition_count(name)]
        except RightError:
            check_rights(target)  # raises an error with more details, if possible
            raise


def create_topics(kafka: Mapping[str, str], topics: list[NewTopic], *, may_be_there: bool) -> None:
    """Create topics; with `may_be_there` another client may have created them meanwhile.

    Raises:
        RightError: The login may not create them.
        PipelineError: The broker refuses.
    """
    if not topics:
        return
    admin = quiet_admin(kafka)  # must outlive its futures
    for name, future in admin.create_topics(topics).items():
        try:
            future.result(WAIT_S)
        except KafkaException as error:
            if is_refusal(error.args[0]):
                raise error_of([Right("create", "topic", name)], kafka) from error
            if not may_be_there or error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise PipelineError(f"topic {name} could not be created: {error}") from error


def folder_of(text: str) -> Path:
    """Return a checkpoint's path; raise PipelineError for a URL."""
    if "://" in text:
        raise PipelineError(f"checkpoint {text}: use a path on a disk that outlives the run")
    return Path(text)
