"""A group member on confluent-kafka."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests.groups.members.speaking import (
    Settings,
    Speaker,
    leave_command,
    protocol_configs,
    settings_of,
)

MOST_UNCOMMITTED = 10


class Member:
    """Commits processed offsets when idle, before partitions are revoked, and periodically.

    A commit that a rebalance refuses is retried while the partition is still assigned.
    """

    def __init__(self, settings: Settings) -> None:
        self.speaker = Speaker(settings.name)
        self.topic = settings.topic
        self.done: dict[int, int] = {}
        self.records_done = 0
        config: dict[str, Any] = {
            "bootstrap.servers": settings.bootstrap,
            "group.id": settings.group,
            **protocol_configs(settings.assignors, settings.session_ms),
            "max.poll.interval.ms": max(10_000, settings.session_ms),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "socket.timeout.ms": 10_000,
        }
        if settings.instance_id:
            config["group.instance.id"] = settings.instance_id
        self.consumer = Consumer(config)

    def run(self) -> None:
        leave = leave_command()
        self.consumer.subscribe(
            [self.topic], on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_lost
        )
        while not leave.is_set():
            polled = self.consumer.poll(0.05)
            if polled is None:
                self.commit()
            elif polled.error():
                self.speaker.error(polled.error())
            else:
                self.take(polled)
        self.consumer.close()
        self.speaker.left()

    def take(self, message: Any) -> None:
        self.speaker.record(message.partition(), message.offset())
        self.done[message.partition()] = message.offset() + 1
        self.records_done += 1
        if self.records_done % MOST_UNCOMMITTED == 0:
            self.commit()

    def commit(self) -> None:
        if not self.done:
            return
        done, self.done = self.done, {}
        offsets = [TopicPartition(self.topic, part, offset) for part, offset in done.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            self.done = done
            self.speaker.error(error)
        else:
            self.speaker.committed(done)

    def on_assign(self, _: Any, partitions: list[TopicPartition]) -> None:
        self.speaker.assigned(topic_partition.partition for topic_partition in partitions)

    def on_revoke(self, _: Any, partitions: list[TopicPartition]) -> None:
        self.commit()
        self.drop(partitions)

    def on_lost(self, _: Any, partitions: list[TopicPartition]) -> None:
        self.drop(partitions)

    def drop(self, partitions: list[TopicPartition]) -> None:
        for topic_partition in partitions:
            self.done.pop(topic_partition.partition, None)
        self.speaker.revoked(topic_partition.partition for topic_partition in partitions)


if __name__ == "__main__":
    Member(settings_of()).run()
