"""A member of one churn stage: it consumes and produces records and commits both in transactions.

    python -m compat_tests.transactions.churn_member name bootstrap source target group id seed wait

`id` is the transactional id, `wait` the timeout of requests and transactions in seconds. Each
transaction covers the records of one consume call. A record's value is its id and passes through
all stages; its header `txn` names the transaction, and its header `parts` holds the transaction's
record count per partition. One transaction in ten is aborted after its records are written.

Standard output has one JSON object per line: `{"event": "ready"}` once the producer is initialized,
`{"event": "aborting", "txn": …}` before an abort (readers must not see that transaction),
`{"event": "committed", "count": …}`, `{"event": "error", "error": …}`, and, as the last line,
`{"event": "left"}` after the end of standard input.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import zlib
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from compat_tests.groups.members.speaking import leave_command

MOST_RECORDS = 100  # per transaction
PARTITIONS = 4
SESSION_MS = 3000
START_S = 60  # longer than a broker's restart
# When its broker is killed, librdkafka may lose a TxnOffsetCommit before sending it: the call then
# ignores its timeout and never returns (with Apache Kafka too). An alarm ends the program, and the
# test starts another member with the same transactional id.
GIVE_UP_S = 2  # beyond the call's own timeout
MOST_TRIES = 3
ABORTED_SHARE = 0.1


class FatalError(Exception):
    """The producer must be replaced."""


class ChurnMember:
    """One member, which replaces its producer when necessary."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.source = options.source
        self.target = options.target
        self.transactional_id = options.id
        self.request_s = options.wait
        self.name = options.name
        self.bootstrap = options.bootstrap
        self.choice = random.Random(f"{options.seed}-{self.name}")
        self.transactions = 0
        self.producer: Any = None
        # From the last assignment: a member that has since lost its partitions must not commit
        # their offsets with newer group metadata.
        self.metadata: Any = None
        self.consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": options.group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": SESSION_MS // 10,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )

    def run(self) -> None:
        leave = leave_command()
        self.consumer.subscribe([self.source], on_assign=self.on_assign)
        self.start_producer()
        while not leave.is_set():
            try:
                self.copy_some()
            except FatalError as error:
                self.say(event="error", error=f"fatal: {error}")
                self.start_producer()
                self.rewind()
        self.consumer.close()
        self.say(event="left")

    def start_producer(self) -> None:
        """Create a producer with the same transactional id, which aborts an open transaction."""
        self.producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": self.request_s * 1000,
                "linger.ms": 1,
                "reconnect.backoff.max.ms": 200,
                "log_level": 2,
            }
        )
        self.again(self.producer.init_transactions, START_S)
        self.say(event="ready")

    def on_assign(self, consumer: Any, _: Any) -> None:
        self.metadata = consumer.consumer_group_metadata()

    def copy_some(self) -> None:
        messages = self.consumer.consume(MOST_RECORDS, 0.1)
        valid_messages = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                self.say(event="error", error=str(message.error()))
        if not valid_messages:
            return
        self.transactions += 1
        transaction = f"{self.name}-{self.transactions}"
        try:
            self.producer.begin_transaction()
            self.write(valid_messages, transaction)
            if self.choice.random() < ABORTED_SHARE:
                self.producer.flush(self.request_s)
                self.abort(transaction)
                return
            ends = offsets_after(valid_messages)
            send_offsets = self.producer.send_offsets_to_transaction
            self.again(send_offsets, ends, self.metadata, self.request_s)
            self.again(self.producer.commit_transaction, self.request_s)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise FatalError(str(error)) from error
            self.say(event="error", error=str(error))
            self.abort(transaction)
        else:
            self.say(event="committed", count=len(valid_messages))

    def write(self, messages: list[Any], transaction: str) -> None:
        parts = Counter(partition_of(message.value()) for message in messages)
        headers = [
            ("txn", transaction.encode()),
            ("parts", json.dumps([parts[partition] for partition in range(PARTITIONS)]).encode()),
        ]
        for message in messages:
            value = message.value()
            self.producer.produce(
                self.target, value, partition=partition_of(value), headers=headers
            )
            self.producer.poll(0)

    def abort(self, transaction: str) -> None:
        self.say(event="aborting", txn=transaction)
        try:
            self.again(self.producer.abort_transaction, self.request_s)
        except KafkaException as error:
            raise FatalError(str(error)) from error
        self.rewind()

    def rewind(self) -> None:
        """Seek to the committed offsets; exit like a killed member when they are unavailable."""
        for topic_partition in self.committed():
            try:
                self.consumer.seek(
                    TopicPartition(
                        topic_partition.topic,
                        topic_partition.partition,
                        max(topic_partition.offset, 0),
                    )
                )
            except KafkaException as error:
                self.give_up(f"seek: {error}")

    def committed(self) -> list[TopicPartition]:
        offsets: list[TopicPartition] = []
        try:
            offsets = self.consumer.committed(self.consumer.assignment(), timeout=self.request_s)
        except KafkaException as error:
            self.give_up(f"committed: {error}")
        for topic_partition in offsets:
            if topic_partition.error is not None:  # its offset is invalid
                self.give_up(f"committed: {topic_partition.error}")
        return offsets

    def give_up(self, reason: str) -> None:
        """Exit as the alarm does."""
        self.say(event="error", error=reason)
        os.kill(os.getpid(), signal.SIGALRM)

    def again(self, call: Any, *arguments: Any) -> None:
        """Retry a call until success or a fatal error; its last argument is the timeout in s."""
        for _ in range(MOST_TRIES):
            signal.alarm(arguments[-1] + GIVE_UP_S)
            try:
                call(*arguments)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self.say(event="error", error=f"again: {error}")
            else:
                return
            finally:
                signal.alarm(0)
        raise FatalError(f"{call.__name__} does not come to an end")

    def say(self, **event: object) -> None:
        """Write a line in one call, because all members share a pipe."""
        line = json.dumps({"member": self.name, **event}) + "\n"
        os.write(sys.stdout.fileno(), line.encode())


def partition_of(value: bytes) -> int:
    return zlib.crc32(value) % PARTITIONS


def offsets_after(messages: list[Any]) -> list[TopicPartition]:
    ends: dict[tuple[str, int], int] = {}
    for message in messages:
        ends[message.topic(), message.partition()] = message.offset() + 1
    return [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("name", "bootstrap", "source", "target", "group", "id", "seed"):
        parser.add_argument(name)
    parser.add_argument("wait", type=int)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    ChurnMember(options_of()).run()
