"""A group member on kafka-python."""

from __future__ import annotations

import sys
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from compat_tests.groups.members.speaking import Settings, Speaker, leave_command, settings_of

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):
    """Says what is assigned and revoked. Records are committed within a turn of polling."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.speaker.assigned(one.partition for one in assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.speaker.revoked(one.partition for one in revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        self.speaker.revoked(one.partition for one in lost)


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


def run(settings: Settings) -> None:
    speaker = Speaker(settings.name)
    leave = leave_command()
    consumer = make_consumer(settings)
    consumer.subscribe([settings.topic], listener=Listener(speaker))
    while not leave.is_set():
        done: dict[int, int] = {}
        try:
            polled = consumer.poll(timeout_ms=50)
            for records in polled.values():
                for record in records:
                    speaker.record(record.partition, record.offset)
                    done[record.partition] = record.offset + 1
            if done:
                consumer.commit()
                speaker.committed(done)
        except KafkaError as error:
            speaker.error(error)
    consumer.close()
    speaker.left()


if __name__ == "__main__":
    run(settings_of(sys.argv[1:]))
