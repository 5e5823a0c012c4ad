"""A micro-batch to Kafka, exactly once: planned, cut into slices, each sent in one transaction.

    plan    a batch that is new: positions are as its number says, missing ones are written, then
            the plan is kept; one that was begun before: its own plan, and every position is there
    place   the job makes placed rows of its input, by the plan
    send    slices are tasks of Spark; one that was sent is told so by its position. Before it
            sends, a slice checks that the source's topic was not recreated (source_identity.py)

Where it can't hold: input that is another when it is read again (files that were changed, a
function that is not one), and a group whose offsets were deleted while a batch was broken off,
which is told (PositionError).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from pyspark import TaskContext

from wirebroker.pipelines.delivery.positions import NOWHERE, WAIT_S, KeptPositions, Positions
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
    SliceSent,
    SliceWish,
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
    """Where a job's records go.

    Attributes:
        kafka: Settings of clients.
        job: The job's name.
        topic: For its records.
        dead_letters: The topic for what cannot be one; "": none.
        partitions: Of the topic, where it is to be made.
    """

    kafka: dict[str, str]
    job: str
    topic: str
    dead_letters: str
    partitions: int


class Delivery:
    """Sends a job's batches.

    Args:
        target: Where to.
        checkpoint: The job's.
    """

    def __init__(self, target: Target, checkpoint: JobFolder) -> None:
        self._target = target
        self._checkpoint = checkpoint
        self._positions = KeptPositions()

    def close(self) -> None:
        """Leave the broker."""
        self._positions.close()

    def plan(self, batch: int, more: Callable[[], dict[str, Any]] = dict) -> BatchPlan:
        """Return what a batch is cut by.

        Args:
            batch: Its number.
            more: Asked for what else is to be the same, when the batch is new.

        Raises:
            PositionError: Positions and checkpoint do not go together.
            KafkaException: The broker.
        """
        target = self._target
        known = self._checkpoint.find(batch)
        of = (target.kafka, target.job, target.topic, self._checkpoint.identity)
        if known is not None:
            # An attempt of this batch that was broken off may have left a transaction open, which
            # only its slice ends: to wait for it here is to wait until the broker gives it up.
            with Positions(*of, stable=False) as positions:
                self._check(positions.read(range(known.partitions)), known, sent_before=1)
            return known
        with self._positions.lend(*of) as positions:
            partitions = positions.partition_count(target.topic)
            dead = positions.partition_count(target.dead_letters) if target.dead_letters else 0
            plan = BatchPlan(batch, partitions, dead, more())
            found = positions.read(range(partitions))
            missing = {number: batch for number, place in found.items() if place == NOWHERE}
            self._check(found | missing, plan, sent_before=0)
            if missing:
                positions.write(missing)
        self._checkpoint.keep(plan)
        return plan

    def skip_begun(self) -> None:
        """Leave the last batch that was begun as it is; move the positions of all slices past it.

        Raises:
            PositionError: Positions of another checkpoint.
            KafkaException: The broker.
        """
        target, last = self._target, self._checkpoint.last_begun()
        if last < 0:
            return
        of = (target.kafka, target.job, target.topic, self._checkpoint.identity)
        with Positions(*of, stable=False) as positions:
            slices = range(positions.partition_count(target.topic))
            positions.read(slices)  # which refuses those of another checkpoint
            for number in slices:
                end_open_transaction(SliceWish(*of, last), number)
            positions.write(dict.fromkeys(slices, last + 1))

    def send(
        self, placed: DataFrame, plan: BatchPlan, read: ReadTopic | None = None
    ) -> list[SliceSent]:
        """Send placed rows; return what became of each slice.

        Args:
            placed: The rows.
            plan: The batch's.
            read: The topic that the rows come from, if they come from a broker.

        Raises:
            PySparkException: A task failed: the batch is to be done again.
        """
        target = self._target
        wish = SliceWish(
            target.kafka, target.job, target.topic, self._checkpoint.identity, plan.batch
        )
        slices = placed.repartitionById(plan.partitions, "slice")
        sent = slices.sortWithinPartitions(*SOURCE_ORDER).mapInArrow(
            _Sender(wish, read), SENT_COLUMNS
        )
        return [SliceSent(*row) for row in sent.collect()]

    def _check(self, found: dict[int, int], plan: BatchPlan, *, sent_before: int) -> None:
        job, topic = self._target.job, self._target.topic
        for number, position in found.items():
            if position == NOWHERE:
                raise lost_position(job, topic, number)
            # One ahead: this slice was sent before the run was broken off. One behind cannot be:
            # Spark begins a batch when the last is done.
            if not plan.batch <= position <= plan.batch + sent_before:
                raise PositionError(
                    f"group {job} is at batch {position} of {topic} (slice {number}), the "
                    f"checkpoint at {plan.batch}: one of the two was set back"
                )


# Of a worker of Spark's, which does slice after slice, one at a time.
_positions: Final = KeptPositions()


class _Sender:
    """What a task does with its slice."""

    def __init__(self, wish: SliceWish, read: ReadTopic | None) -> None:
        self._wish = wish
        self._read = read

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if self._read is not None:
            # Spark has read the whole batch: its rows come to the slices by a shuffle.
            self._read.check()
        wish, rows = self._wish, from_batches(batches)
        with _positions.lend(wish.kafka, wish.job, wish.topic, wish.identity) as positions:
            sent = send_slice(wish, context.partitionId(), rows, positions)
        yield pyarrow.RecordBatch.from_pylist([sent._asdict()])


def make_topics(target: Target, sources: Iterable[str] = ()) -> None:
    """Make the topics that are not there; see that the job may do what it has to.

    Args:
        target: Whose.
        sources: Topics that must be there before.

    Raises:
        RightError: It may not.
        PipelineError: The broker refuses, a source is not there, or there is no broker.
    """
    wanted = {target.topic: target.partitions}
    if target.dead_letters:
        wanted[target.dead_letters] = 1
    try:
        missing = _missing_topics(target, wanted, sources)
        check_rights(target)
        if missing:
            new = [NewTopic(name, wanted[name]) for name in missing]
            create_topics(target.kafka, new, may_be_there=True)
            check_rights(target)  # of those that are made now
    except KafkaException as error:
        told, address = error.args[0].str(), target.kafka["bootstrap.servers"]
        raise PipelineError(f"[kafka], bootstrap.servers {address}: {told}") from error


def _missing_topics(target: Target, wanted: Iterable[str], sources: Iterable[str]) -> list[str]:
    with Positions(target.kafka, target.job, target.topic, "") as positions:
        for name in sources:
            if not positions.partition_count(name):
                known = [each for each in positions.topics() if each not in wanted]
                raise JobFileError(f"there is no topic {name}{like(name, known)}")
        try:
            return [name for name in wanted if not positions.partition_count(name)]
        except RightError:
            check_rights(target)  # which tells more, if not all
            raise


def create_topics(kafka: Mapping[str, str], topics: list[NewTopic], *, may_be_there: bool) -> None:
    """Create topics.

    Args:
        kafka: Settings of clients.
        topics: What to create; none: nothing is done.
        may_be_there: Whether somebody else may have created them meanwhile, as they are then.

    Raises:
        RightError: The login may not.
        PipelineError: The broker refuses.
    """
    if not topics:
        return
    admin = quiet_admin(kafka)  # what it promises ends with it
    for name, future in admin.create_topics(topics).items():
        try:
            future.result(WAIT_S)
        except KafkaException as error:
            if is_refusal(error.args[0]):
                raise error_of([Right("create", "topic", name)], kafka) from error
            if not may_be_there or error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise PipelineError(f"topic {name} could not be made: {error}") from error


def folder_of(text: str) -> Path:
    """Return a job's folder for checkpoints, which is this machine's or shared by its mounts.

    Raises:
        PipelineError: It is an address.
    """
    if "://" in text:
        raise PipelineError(f"checkpoint {text}: a path, on a disk that outlives the run")
    return Path(text)
