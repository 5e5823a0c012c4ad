"""A job's progress, stored as committed offsets of a consumer group with the job's name.

    group JOB, topic TARGET, partition S: offset N = slice S of all batches before N was sent;
    the commit's metadata is the identity of the job's checkpoint

Source: KIP-98; KIP-447 (a producer commits offsets for a group without members).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from wirebroker.pipelines.delivery.rights import Right, error_of, is_refusal
from wirebroker.pipelines.job.errors import PipelineError, PositionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

WAIT_S: Final = 60.0
# Leaves time for retries: librdkafka's default, a minute, is all of WAIT_S.
REQUEST_MS: Final = 20_000
_RECONNECT_MS: Final = 2_000
NOWHERE: Final = -1


class Positions:
    """A client for a job's offsets.

    With `stable`, reads wait for open transactions with offsets.
    """

    def __init__(
        self, kafka: Mapping[str, str], job: str, topic: str, identity: str, *, stable: bool = True
    ) -> None:
        self._kafka = kafka
        self._topic = topic
        self._job = job
        self._identity = identity
        isolation = "read_committed" if stable else "read_uncommitted"
        own = {"group.id": job, "enable.auto.commit": False, "isolation.level": isolation}
        # By default librdkafka tries, and logs, an unreachable address twenty times a second.
        patience = {"socket.timeout.ms": REQUEST_MS, "reconnect.backoff.ms": _RECONNECT_MS}
        self._consumer = Consumer({**patience, **_for_consumers(kafka), **own})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def read(self, slices: Iterable[int]) -> dict[int, int]:
        """Return each slice's position, or NOWHERE.

        Raises:
            PositionError: A position belongs to another checkpoint.
            KafkaException: A request failed.
        """
        partitions = [TopicPartition(self._topic, number) for number in slices]
        positions: dict[int, int] = {}
        for partition in self._consumer.committed(partitions, timeout=WAIT_S):
            if partition.error is not None:
                raise KafkaException(partition.error)
            positions[partition.partition] = partition.offset if partition.offset >= 0 else NOWHERE
            if partition.offset >= 0 and partition.metadata != self._identity:
                raise PositionError(
                    f"group {self._job} has positions of another checkpoint: this one is new, "
                    f"or another job has the same name. Use another name, or delete the group "
                    f"if its records in {self._topic} may be sent again"
                )
        return positions

    def write(self, positions: Mapping[int, int]) -> None:
        """Commit positions outside a transaction."""
        self._consumer.commit(offsets=self.offsets(positions), asynchronous=False)

    def offsets(self, positions: Mapping[int, int]) -> list[TopicPartition]:
        """Return positions in the form of a commit."""
        return [
            TopicPartition(self._topic, number, position, self._identity)
            for number, position in positions.items()
        ]

    def group(self) -> Any:
        """Return the group metadata for a producer's commit."""
        return self._consumer.consumer_group_metadata()

    def end_of(self, number: int) -> int:
        """Return the end offset of the topic's partition."""
        _, end = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, number), timeout=WAIT_S
        )
        return int(end)

    def topics(self) -> list[str]:
        """Return the names of all topics."""
        return list(self._consumer.list_topics(timeout=WAIT_S).topics)

    def partition_count(self, topic: str) -> int:
        """Return a topic's number of partitions; 0 if it does not exist.

        Raises:
            RightError: The login may not describe it.
            PipelineError: The broker returns another error for it.
            KafkaException: No broker responds.
        """
        metadata = self._consumer.list_topics(topic, timeout=WAIT_S).topics[topic]
        if metadata.error is not None and not metadata.partitions:
            if metadata.error.name() == "UNKNOWN_TOPIC_OR_PART":
                return 0
            if is_refusal(metadata.error):
                raise error_of([Right("describe", "topic", topic)], self._kafka)
            raise PipelineError(f"topic {topic}: {metadata.error.str()}")
        return len(metadata.partitions)


class CachedPositions:
    """A client for positions, reused until an error occurs or another job needs it.

    A new librdkafka client needs 0.5 to 1 s to find its coordinator, most of a small batch's time.
    """

    def __init__(self) -> None:
        self._arguments: tuple[Mapping[str, str], str, str, str] | None = None
        self._positions: Positions | None = None

    @contextmanager
    def lend(
        self, kafka: Mapping[str, str], job: str, topic: str, identity: str
    ) -> Iterator[Positions]:
        """Lend a job's positions."""
        arguments = (kafka, job, topic, identity)
        if self._positions is None or self._arguments != arguments:
            self.close()
            self._arguments, self._positions = arguments, Positions(*arguments)
        try:
            yield self._positions
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect."""
        positions, self._positions = self._positions, None
        if positions is not None:
            positions.close()


def end_offsets(kafka: Mapping[str, str], topic: str) -> dict[str, int]:
    """Return a topic's end offset of each partition; raise PipelineError if it is missing."""
    with Positions(kafka, "none", topic, "") as positions:
        count = positions.partition_count(topic)
        if not count:
            raise PipelineError(f"there is no topic {topic}")
        return {str(number): positions.end_of(number) for number in range(count)}


def _for_consumers(kafka: Mapping[str, str]) -> dict[str, str]:
    """Remove producers' settings, about which consumers warn."""
    producer_prefixes = (
        "linger.",
        "batch.",
        "compression.",
        "acks",
        "message.",
        "transaction.",
        "queue.",
    )
    settings = {
        name: value for name, value in kafka.items() if not name.startswith(producer_prefixes)
    }
    return {"allow.auto.create.topics": "false", **settings}
