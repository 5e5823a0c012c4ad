"""A group member on kafka-python."""

from __future__ import annotations

from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from compat_tests.groups.members.speaking import Settings, Speaker, leave_command, settings_of

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
# Longer than a rebalance on a busy machine: if a join ends between two polls, kafka-python 3.0.12
# joins once more, and can stay outside the group.
POLL_MS = 3_000


class Listener(ConsumerRebalanceListener):
    """Reports assigned and revoked partitions.

    Processed offsets are committed before the next poll. A commit that a rebalance refuses is
    retried while the partition is still assigned.
    """

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker
        self.done: dict[Any, Any] = {}

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.speaker.assigned(topic_partition.partition for topic_partition in assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        for topic_partition in revoked:
            self.done.pop(topic_partition, None)
        self.speaker.revoked(topic_partition.partition for topic_partition in revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        self.on_partitions_revoked(lost)


def make_consumer(settings: Settings) -> Any:
    return KafkaConsumer(
        bootstrap_servers=settings.bootstrap,
        group_id=settings.group,
        group_instance_id=settings.instance_id,
        partition_assignment_strategy=[ASSIGNORS[name] for name in settings.assignors],
        session_timeout_ms=settings.session_ms,
        heartbeat_interval_ms=settings.heartbeat_ms,
        max_poll_interval_ms=max(10_000, settings.session_ms),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )


def process(consumer: Any, listener: Listener) -> None:
    for partition, records in consumer.poll(timeout_ms=POLL_MS).items():
        for record in records:
            listener.speaker.record(record.partition, record.offset)
            listener.done[partition] = OffsetAndMetadata(record.offset + 1, "", -1)
    if listener.done:
        consumer.commit(listener.done)
        done, listener.done = listener.done, {}
        listener.speaker.committed(
            {topic_partition.partition: to.offset for topic_partition, to in done.items()}
        )


def run(settings: Settings) -> None:
    speaker = Speaker(settings.name)
    leave = leave_command()
    consumer = make_consumer(settings)
    listener = Listener(speaker)
    # A leader without the topic's metadata assigns nothing and rejoins later; if a poll times out
    # meanwhile, kafka-python 3.0.12 can stay outside the group forever.
    consumer.partitions_for_topic(settings.topic)
    consumer.subscribe([settings.topic], listener=listener)
    while not leave.is_set():
        try:
            process(consumer, listener)
        except KafkaError as error:
            speaker.error(error)
    consumer.close()
    speaker.left()


if __name__ == "__main__":
    run(settings_of())
