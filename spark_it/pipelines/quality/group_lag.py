"""The lag of consumer groups: the log's end offsets minus committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from wirebroker.pipelines.delivery.positions import REQUEST_MS, WAIT_S, Positions, end_offsets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class PartitionLag(NamedTuple):
    """A group's lag in a partition."""

    group: str
    topic: str
    partition: int
    committed: int
    end: int

    @property
    def lag(self) -> int:
        """The number of unread offsets."""
        return max(0, self.end - self.committed)


def lags_of(kafka: Mapping[str, str], topics: Collection[str]) -> list[PartitionLag]:
    """Return the lag of each group with offsets in the topics.

    Raises:
        KafkaException: A broker failed, even if others respond.
    """
    admin = _admin(kafka)
    groups = _groups(admin)
    lags: list[PartitionLag] = []
    ends: dict[str, dict[str, int]] = {}
    for group in sorted(groups):
        futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        for committed in futures[group].result(WAIT_S).topic_partitions:
            if committed.topic not in topics or committed.offset < 0:
                continue
            if committed.topic not in ends:
                ends[committed.topic] = end_offsets(kafka, committed.topic)
            end = ends[committed.topic].get(str(committed.partition), 0)
            lags.append(
                PartitionLag(group, committed.topic, committed.partition, committed.offset, end)
            )
    return lags


def check_visible(kafka: Mapping[str, str], topics: Iterable[str]) -> None:
    """Check that the login may describe the topics.

    Groups that it may not describe cannot be found, because brokers omit them.

    Raises:
        RightError: The login may not describe a topic.
        KafkaException: A request failed.
    """
    _groups(_admin(kafka))  # fails sooner without a broker
    with Positions(kafka, "none", "", "") as positions:
        for topic in topics:
            positions.partition_count(topic)


def _admin(kafka: Mapping[str, str]) -> AdminClient:
    return AdminClient({"socket.timeout.ms": REQUEST_MS, **kafka})


def _groups(admin: AdminClient) -> list[str]:
    listed = admin.list_consumer_groups().result(WAIT_S)
    if listed.errors:
        # Otherwise a failed broker's groups would be left out.
        raise KafkaException(listed.errors[0])
    return [group.group_id for group in listed.valid]
