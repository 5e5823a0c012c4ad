"""A member of one stage of the churn: consumes, writes what it consumed, commits both at once.

    python -m compat_tests.transactions.churn_member name bootstrap source target group id seed wait

`id` is the transactional id, `wait` how many seconds a request or a transaction may take. Each
transaction covers what one call consumed. A record's value is its id, which is all that the stages
pass on; its header `txn` names the transaction, and its header `parts` says how many of the
transaction's records go to each partition. One transaction in ten is aborted after everything has
been written.

Standard output is a JSON object per line: `{"event": "ready"}` once the producer is initialized,
`{"event": "aborting", "txn": …}` before an abort (so that a reader knows what it must not see),
`{"event": "committed", "count": …}`, `{"event": "error", "error": …}`, and `{"event": "left"}`
after the end of standard input, as the last line.
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

MOST_RECORDS = 100  # of a transaction
PARTITIONS = 4
SESSION_MS = 3000
START_S = 60  # longer than a broker is away
# When its broker is killed, librdkafka may lose a TxnOffsetCommit that it was about to send: the
# call then never returns, whatever its timeout (with Apache Kafka too). An alarm ends the program,
# and the test starts another member with its transactional id.
GIVE_UP_S = 2  # beyond the call's own timeout
MOST_TRIES = 3
ABORTED_SHARE = 0.1


class FatalError(Exception):
    """The producer can't go on; a new one can."""


class ChurnMember:
    """One member, over as many producers as it takes."""

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
        # As of the last assignment: a member that has lost its partitions meanwhile must not
        # commit their offsets under what it is by then.
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
        """Make a producer, with the same transactional id: what the last one left is aborted."""
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
        found = self.consumer.consume(MOST_RECORDS, 0.1)
        good = [one for one in found if one.error() is None]
        for one in found:
            if one.error() is not None:
                self.say(event="error", error=str(one.error()))
        if not good:
            return
        self.transactions += 1
        transaction = f"{self.name}-{self.transactions}"
        try:
            self.producer.begin_transaction()
            self.write(good, transaction)
            if self.choice.random() < ABORTED_SHARE:
                self.producer.flush(self.request_s)
                self.abort(transaction)
                return
            ends = offsets_after(good)
            send_offsets = self.producer.send_offsets_to_transaction
            self.again(send_offsets, ends, self.metadata, self.request_s)
            self.again(self.producer.commit_transaction, self.request_s)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise FatalError(str(error)) from error
            self.say(event="error", error=str(error))
            self.abort(transaction)
        else:
            self.say(event="committed", count=len(good))

    def write(self, found: list[Any], transaction: str) -> None:
        parts = Counter(partition_of(one.value()) for one in found)
        headers = [
            ("txn", transaction.encode()),
            ("parts", json.dumps([parts[each] for each in range(PARTITIONS)]).encode()),
        ]
        for one in found:
            value = one.value()
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
        """Go back to what is committed; end like a killed member when that can't be learned."""
        for one in self.committed():
            try:
                self.consumer.seek(TopicPartition(one.topic, one.partition, max(one.offset, 0)))
            except KafkaException as error:
                self.give_up(f"seek: {error}")

    def committed(self) -> list[TopicPartition]:
        offsets: list[TopicPartition] = []
        try:
            offsets = self.consumer.committed(self.consumer.assignment(), timeout=self.request_s)
        except KafkaException as error:
            self.give_up(f"committed: {error}")
        for one in offsets:
            if one.error is not None:  # then its offset means nothing
                self.give_up(f"committed: {one.error}")
        return offsets

    def give_up(self, why: str) -> None:
        """End as the alarm does."""
        self.say(event="error", error=why)
        os.kill(os.getpid(), signal.SIGALRM)

    def again(self, call: Any, *arguments: Any) -> None:
        """Call until it works, or fails for good; the last argument is the timeout in seconds."""
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
        """Write a line by one call; all members share a pipe."""
        line = json.dumps({"member": self.name, **event}) + "\n"
        os.write(sys.stdout.fileno(), line.encode())


def partition_of(value: bytes) -> int:
    """Return the partition that a record goes to."""
    return zlib.crc32(value) % PARTITIONS


def offsets_after(found: list[Any]) -> list[TopicPartition]:
    """Return the offsets to go on from."""
    ends: dict[tuple[str, int], int] = {}
    for one in found:
        ends[one.topic(), one.partition()] = one.offset() + 1
    return [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("name", "bootstrap", "source", "target", "group", "id", "seed"):
        parser.add_argument(name)
    parser.add_argument("wait", type=int)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    ChurnMember(options_of()).run()
