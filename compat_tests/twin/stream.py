"""The requests that both twins receive: the same bytes in the same order with the same times.

Every timestamp in a batch is fixed and years old, so stored data depends on the broker's clock only
where the broker sets the time: metadata records, commits, groups. Ids that a broker generates
(topics, producers, members) are taken from its responses.

LogAppendTime (the broker's clock) and topics that recompress (its compressor) are left out, because
brokers may choose those bytes.
"""

from __future__ import annotations

from typing import Any

from compat_tests.support.raw_requests import (
    APPEND,
    BROKER_RESOURCE,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC_RESOURCE,
    Requests,
    batch,
    record,
)
from compat_tests.support.transaction_requests import OpenTransaction
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec

DAY_MS = 86_400_000

# Broker configs for the stream: small segments, short intervals, nothing that depends on the clock.
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "metadata.max.idle.interval.ms": "0",  # no NoOp records
    "log.cleaner.enable": "true",
    "log.index.interval.bytes": "4096",
}


class Stream(Requests):
    def run(self) -> None:
        try:
            self.shapes()
            self.codecs()
            self.segments()
            self.times()
            self.idempotence()
            self.internal_segments()
            self.configs()
            self.deletions()
            self.retention()
            self.delete_records()
            self.groups()
            self.transactions()
        finally:
            self.close()

    # -- the parts ---------------------------------------------------------------------------

    def shapes(self) -> None:
        """Send records with and without keys, values and headers, in small and large batches."""
        self.create("shapes", 3)
        self.append("shapes", batch(record(0, b"k", b"v")))
        self.append("shapes", batch(record(0, None, b"v"), record(1, b"k", None)))
        self.append("shapes", batch(record(0, b"", b"", (("h", b"x"), ("h", None), ("", b"")))))
        self.append("shapes", batch(*(record(n, b"%d" % n, b"x" * n) for n in range(300))))
        # Partition 2 stays empty.
        self.append("shapes", batch(record(0, b"k", b"v" * 100_000)), partition=1)

    def codecs(self) -> None:
        self.create("codecs", 1, {"compression.type": "producer"})
        for codec in Codec:
            records = [record(n, b"key %d" % (n % 7), b"value" * 20) for n in range(200)]
            self.append("codecs", batch(*records, codec=codec))

    def segments(self) -> None:
        self.create("segments", 2, {"segment.bytes": "1048576", "index.interval.bytes": "5000"})
        for number in range(120):
            size = 200 + number * 7919 % 60_000
            data = batch(record(number, b"%d" % number, b"s" * size), start=number * 10)
            self.append("segments", data, partition=number % 3 // 2)

    def times(self) -> None:
        """Send unordered and negative timestamps, and some that roll a segment by age."""
        self.create("times", 1, {"index.interval.bytes": "0"})
        for step in (0, 5, -3, 5, 5, 10, -100, 11):
            self.append("times", batch(record(0, b"k", b"v"), record(1, b"k", b"v"), start=step))
        self.create("old", 1, {"segment.ms": str(DAY_MS)})
        for day in (0, 0.5, 1.5, 1.6, 1.4, 9):
            start = int(day * DAY_MS)
            self.append("old", batch(record(0, b"k", b"v"), record(-7, b"k", b"w"), start=start))
        self.create("none", 1)
        self.append("none", build_batch([(b"k", b"v", ())], timestamp_ms=-1))
        self.append("none", batch(record(0, b"k", b"v")))

    def idempotence(self) -> None:
        """Send as idempotent producers, with duplicate batches and a second epoch."""
        self.create("idempotent", 2, {"segment.bytes": "1048576"})
        for _ in range(3):
            producer = self.producer_id()
            for sequence in (0, 2, 4, 4, 6):
                data = batch(
                    record(0, b"k", b"v" * 100),
                    record(1, b"k", b"w"),
                    start=sequence * 1000,
                    producer_id=producer,
                    producer_epoch=0,
                    base_sequence=sequence,
                )
                self.append("idempotent", data)
            second: dict[str, Any] = {
                "producer_id": producer,
                "producer_epoch": 1,
                "base_sequence": 0,
            }
            filler = batch(record(0, b"k", b"f" * 400_000), **second)
            self.append("idempotent", filler, partition=1)

    def internal_segments(self) -> None:
        """Write segments of one batch each."""
        self.create("tiny", 1, {"internal.segment.bytes": "200", "index.interval.bytes": "1"})
        producer = self.producer_id()
        for number in range(12):
            base: dict[str, Any] = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": number,
            }
            self.append("tiny", batch(record(number, b"k", b"v" * (number * 20 % 100)), **base))

    def configs(self) -> None:
        """Set, change and remove configs of topics and of the broker."""
        self.create("configured", 1, {"retention.bytes": "1000000", "max.message.bytes": "2000000"})
        self.alter(TOPIC_RESOURCE, "configured", ("max.message.bytes", SET, "3000000"))
        self.alter(TOPIC_RESOURCE, "configured", ("retention.bytes", DELETE, None))
        self.alter(TOPIC_RESOURCE, "configured", ("cleanup.policy", APPEND, "compact"))
        self.alter(TOPIC_RESOURCE, "configured", ("cleanup.policy", SUBTRACT, "delete"))
        self.alter(BROKER_RESOURCE, "1", ("log.cleaner.threads", SET, "2"))
        self.alter(BROKER_RESOURCE, "", ("message.max.bytes", SET, "5000000"))
        self.ask(
            ApiKey.CREATE_PARTITIONS,
            3,
            {
                "topics": [{"name": "configured", "count": 3, "assignments": None}],
                "timeout_ms": 30_000,
            },
        )
        self.wait_for_partitions("configured", 3)
        self.append("configured", batch(record(0, b"k", b"v")), partition=2)

    def deletions(self) -> None:
        self.create("gone", 2)
        self.append("gone", batch(record(0, b"k", b"v")))
        self.create("again", 1)
        self.append("again", batch(record(0, b"k", b"before")))
        self.delete("gone")
        self.delete("again")
        self.create("again", 1)
        self.append("again", batch(record(0, b"k", b"after")))

    def retention(self) -> None:
        """Let old segments be deleted by size."""
        configs = {"internal.segment.bytes": "1000", "retention.bytes": "2500"}
        self.create("retained", 1, configs)
        producer = self.producer_id()
        for number in range(10):
            base: dict[str, Any] = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": number,
            }
            self.append("retained", batch(record(number, b"k", b"r" * 700), **base))
        # One batch of 771 bytes per segment; three of them fit in 2,500 bytes.
        self.wait_for_start("retained", 6)

    def delete_records(self) -> None:
        """Delete records within a segment, at its edge and up to the high watermark."""
        self.create("cut", 3, {"internal.segment.bytes": "1000"})
        for partition in range(3):
            for number in range(6):
                data = batch(record(number, b"k", b"c" * 400), record(number + 1, b"k", b"d"))
                self.append("cut", data, partition=partition)
        offsets = {0: 3, 1: 8, 2: -1}
        partitions = [{"partition_index": p, "offset": o} for p, o in offsets.items()]
        topic = {"name": "cut", "partitions": partitions}
        self.ask(ApiKey.DELETE_RECORDS, 2, {"topics": [topic], "timeout_ms": 30_000})
        self.wait_for_start("cut", 3)
        self.append("cut", batch(record(0, b"k", b"e")))

    def groups(self) -> None:
        """Commit without a group, and run a group of one member from JoinGroup to LeaveGroup."""
        self.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        self.commit("simple", [("shapes", 0, 5, ""), ("codecs", 0, 17, "metadata")])
        self.commit("simple", [("shapes", 0, 6, "")])
        self.commit("other", [("segments", 1, 3, "")])
        member = self.join_alone("members")
        self.commit("members", [("shapes", 0, 1, ""), ("shapes", 1, 0, "")], member=member)
        leave = {"group_id": "members", "members": [{"member_id": member[1]}]}
        self.ask(ApiKey.LEAVE_GROUP, 4, leave)
        self.commit("gone", [("shapes", 0, 5, "")])
        self.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["gone"]})
        topic = {"name": "codecs", "partitions": [{"partition_index": 0}]}
        self.ask(ApiKey.OFFSET_DELETE, 0, {"group_id": "simple", "topics": [topic]})

    def transactions(self) -> None:
        """Commit, abort and leave open transactions, some empty, some with offsets."""
        self.create("transactional", 1, {"segment.ms": str(1 << 50)})
        first = OpenTransaction(self, "one")
        first.append("transactional", b"a", b"b")
        first.commit_offset("in transactions", "shapes", 1)
        first.end(committed=True)
        self.wait_for_end("transactional", 3)
        first.append("transactional", b"c")
        first.append("transactional", b"d")
        first.commit_offset("in transactions", "shapes", 2)
        first.end(committed=False)
        self.wait_for_end("transactional", 6)
        second = OpenTransaction(self, "two")
        second.append("transactional", b"e")
        successor = OpenTransaction(self, "two")  # aborts the previous transaction
        self.wait_for_end("transactional", 8)
        successor.append("transactional", b"f")
