"""How far a job is, kept where its records are: the committed offsets of a group of its name.

    group JOB, topic TARGET, partition S: offset N = slice S has been sent of every batch before N;
    the commit's metadata is the identity of the job's checkpoint

A slice's offset is committed in the slice's own transaction: both are there, or neither. Source:
KIP-98, KIP-447 (a producer commits offsets for a group without members).
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
# After which a client gives a request up, and asks again: librdkafka's own minute is all of WAIT_S.
REQUEST_MS: Final = 20_000
_RECONNECT_MS: Final = 2_000
NOWHERE: Final = -1


class Positions:
    """A job's offsets.

    Args:
        kafka: Settings of clients.
        job: Its name, which is the group's.
        topic: The topic that the records go to.
        identity: The checkpoint's.
        stable: Whether reading waits for transactions that have offsets and no end yet; else what
            was committed before them is read.
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
        # As it is, an address where nobody is would be tried, and told of, twenty times a second.
        patience = {"socket.timeout.ms": REQUEST_MS, "reconnect.backoff.ms": _RECONNECT_MS}
        self._consumer = Consumer({**patience, **_for_consumers(kafka), **own})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def read(self, slices: Iterable[int]) -> dict[int, int]:
        """Return the position of each slice; NOWHERE: there is none.

        Raises:
            PositionError: A position of another checkpoint.
            KafkaException: The broker.
        """
        places = [TopicPartition(self._topic, number) for number in slices]
        found: dict[int, int] = {}
        for each in self._consumer.committed(places, timeout=WAIT_S):
            if each.error is not None:
                raise KafkaException(each.error)
            found[each.partition] = each.offset if each.offset >= 0 else NOWHERE
            if each.offset >= 0 and each.metadata != self._identity:
                raise PositionError(
                    f"group {self._job} has positions of another checkpoint: was this one made "
                    f"anew, or has another job the name? Use another name, or delete the group "
                    f"if what it sent to {self._topic} may be sent again"
                )
        return found

    def write(self, positions: Mapping[int, int]) -> None:
        """Commit positions outside of any transaction.

        Raises:
            KafkaException: The broker.
        """
        self._consumer.commit(offsets=self.offsets(positions), asynchronous=False)

    def offsets(self, positions: Mapping[int, int]) -> list[TopicPartition]:
        """Return positions as a commit has them."""
        return [
            TopicPartition(self._topic, number, position, self._identity)
            for number, position in positions.items()
        ]

    def group(self) -> Any:
        """Return what a producer commits them for."""
        return self._consumer.consumer_group_metadata()

    def end_of(self, number: int) -> int:
        """Return the offset behind the last committed record of a partition of the topic."""
        _, end = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, number), timeout=WAIT_S
        )
        return int(end)

    def topics(self) -> list[str]:
        """Return the names of all topics.

        Raises:
            KafkaException: No broker answers.
        """
        return list(self._consumer.list_topics(timeout=WAIT_S).topics)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has; 0: there is none of the name.

        Raises:
            RightError: It may not be seen.
            PipelineError: The broker knows the topic, and keeps its partitions back.
            KafkaException: No broker answers.
        """
        found = self._consumer.list_topics(topic, timeout=WAIT_S).topics[topic]
        if found.error is not None and not found.partitions:
            if found.error.name() == "UNKNOWN_TOPIC_OR_PART":
                return 0
            if is_refusal(found.error):
                raise error_of([Right("describe", "topic", topic)], self._kafka)
            raise PipelineError(f"topic {topic}: {found.error.str()}")
        return len(found.partitions)


class KeptPositions:
    """The positions of one job after the other, by the same client as long as nothing goes wrong.

    A new client looks for its coordinator at once, when no connection is there yet, and then half a
    second or a second later (librdkafka): that is most of a small batch.
    """

    def __init__(self) -> None:
        self._wish: tuple[Mapping[str, str], str, str, str] | None = None
        self._positions: Positions | None = None

    @contextmanager
    def lend(
        self, kafka: Mapping[str, str], job: str, topic: str, identity: str
    ) -> Iterator[Positions]:
        """Lend the positions of a job, those of no other; arguments as of Positions."""
        wish = (kafka, job, topic, identity)
        if self._positions is None or self._wish != wish:
            self.close()
            self._wish, self._positions = wish, Positions(*wish)
        try:
            yield self._positions
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the client, if there is one."""
        positions, self._positions = self._positions, None
        if positions is not None:
            positions.close()


def end_offsets(kafka: Mapping[str, str], topic: str) -> dict[str, int]:
    """Return the offsets behind the last committed records, by the partitions' numbers.

    Raises:
        PipelineError: There is no such topic.
        KafkaException: The broker.
    """
    with Positions(kafka, "none", topic, "") as positions:
        count = positions.partition_count(topic)
        if not count:
            raise PipelineError(f"there is no topic {topic}")
        return {str(number): positions.end_of(number) for number in range(count)}


def _for_consumers(kafka: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without those of producers, which a consumer warns of."""
    ours = ("linger.", "batch.", "compression.", "acks", "message.", "transaction.", "queue.")
    kept = {name: value for name, value in kafka.items() if not name.startswith(ours)}
    return {"allow.auto.create.topics": "false", **kept}
