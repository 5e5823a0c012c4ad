"""Several members on confluent-kafka in one process; commands and events: see ../README.md."""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests.groups.members.speaking import protocol_configs

if TYPE_CHECKING:
    from collections.abc import Iterable


class Hosted:
    """One member. Only its thread uses its consumer, between two polls."""

    def __init__(self, bootstrap: str, command: list[str]) -> None:
        _, self.name, group, assignor, session_ms, max_poll_interval_ms, metadata_age_ms = command
        self.commands: queue.Queue[list[str]] = queue.Queue()
        self.is_polling = False
        self.is_open = True
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                **protocol_configs([assignor], int(session_ms)),
                "max.poll.interval.ms": int(max_poll_interval_ms),
                "topic.metadata.refresh.interval.ms": int(metadata_age_ms),
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )

    def run(self) -> None:
        while self.is_open:
            try:
                # A member that does not poll waits for a command; its heartbeats continue.
                command = self.commands.get(block=not self.is_polling)
            except queue.Empty:
                self.process()
            else:
                self.obey(command)

    def obey(self, command: list[str]) -> None:
        match command:
            case ["subscribe", _, topics]:
                self.consumer.subscribe(
                    topics.split(","),
                    on_assign=lambda _, partitions: self.say_partitions("assigned", partitions),
                    on_revoke=lambda _, partitions: self.say_partitions("revoked", partitions),
                    on_lost=lambda _, partitions: self.say_partitions("revoked", partitions),
                )
                self.is_polling = True
            case ["stall", _]:
                self.is_polling = False
                self.say(event="stalled")
            case ["poll", _]:
                self.is_polling = True
            case ["commit", _, topic, partition, offset]:
                if self.commit(TopicPartition(topic, int(partition), int(offset))):
                    self.say(event="committed")
            case ["close", _]:
                self.consumer.close()
                self.is_open = False
                self.say(event="left")
            case _:
                raise ValueError(command)

    def process(self) -> None:
        polled = self.consumer.poll(0.05)
        if polled is None:
            return
        if polled.error():
            self.say(event="error", error=str(polled.error()))
            return
        topic, partition, offset = polled.topic(), polled.partition(), polled.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self.say(event="record", partition=f"{topic}-{partition}", offset=offset)
        self.commit(TopicPartition(topic, partition, offset + 1))

    def commit(self, topic_partition: TopicPartition) -> bool:
        """Commit an offset; the result or error becomes an event."""
        try:
            answers = self.consumer.commit(offsets=[topic_partition], asynchronous=False)
        except KafkaException as error:
            self.say(event="error", error=str(error))
            return False
        for answer in answers or ():
            if answer.error:
                self.say(event="error", error=str(answer.error))
                return False
        return True

    def say_partitions(self, event: str, partitions: Iterable[TopicPartition]) -> None:
        self.say(
            event=event,
            partitions=[
                f"{topic_partition.topic}-{topic_partition.partition}"
                for topic_partition in partitions
            ],
        )

    def say(self, **event: Any) -> None:
        """Write an event in one call, because members share the pipe."""
        line = json.dumps({"member": self.name, **event}) + "\n"
        os.write(sys.stdout.fileno(), line.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    bootstrap = parser.parse_args().bootstrap
    members: dict[str, Hosted] = {}
    for line in sys.stdin:
        command = line.rstrip("\n").split("\t")
        if command[0] == "open":
            member = members[command[1]] = Hosted(bootstrap, command)
            threading.Thread(target=member.run, daemon=True).start()
        else:
            members[command[1]].commands.put(command)
    os._exit(0)  # like a killed program, whatever its members do


if __name__ == "__main__":
    main()
