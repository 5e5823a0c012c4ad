"""Values of changes that the console refuses; one cluster serves for all, since none changes it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.brokers.collectors import snapshot_when
from tests.support.console.changes import prepared
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.topics import list_topics
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.kinds.record_fields import MOST_BYTES

EVIL = "<script>alert(1)</script>\"'; rm -rf /"
SOURCE = {"source_topic": "orders", "source_partition": 1, "source_offset": 2, "topic": "copies"}

# A kind of change, values, and what the error says.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    # topics
    ("create-topic", {"topic": "orders"}, "TOPIC_ALREADY_EXISTS"),
    ("create-topic", {"topic": "a b"}, "INVALID_TOPIC_EXCEPTION"),
    ("create-topic", {"topic": EVIL}, "INVALID_TOPIC_EXCEPTION"),
    ("create-topic", {"topic": "x" * 250}, "INVALID_TOPIC_EXCEPTION"),
    ("create-topic", {"topic": "x", "partitions": 0}, "write a number from 1 to"),
    ("create-topic", {"topic": "x", "partitions": "1" * 30}, "is not a whole number"),
    ("create-topic", {"topic": "x", "replicas": 2}, "INVALID_REPLICATION_FACTOR"),
    ("create-topic", {"topic": "x", "configs": "retention.ms"}, "is not a setting: write NAME="),
    ("create-topic", {"topic": "x", "configs": "a=1\na=2"}, "a is set twice"),
    ("create-topic", {"topic": "x", "configs": "a=1\n" * 1001}, "at most 1,000 lines"),
    (
        "create-topic",
        {"topic": "x", "configs": "retention.mss=1"},
        "topics have no config retention.mss; did you mean retention.ms?",
    ),
    ("create-topic", {"topic": "x", "configs": "retention.ms=soon"}, "INVALID_CONFIG"),
    ("add-partitions", {"topic": "orders", "partitions": 2}, "has 2 partitions already"),
    ("add-partitions", {"topic": "order", "partitions": 2}, "did you mean orders?"),
    ("empty-topic", {"topic": "latest"}, "its cleanup.policy is compact"),
    ("empty-topic", {"topic": "__consumer_offsets"}, "it is an internal topic"),
    ("empty-topic", {"topic": "none"}, "there is no topic none"),
    ("trim-topic", {"topic": "orders"}, "write either an offset or a time"),
    ("trim-topic", {"topic": "orders", "before_offset": 1, "before_time": "1h"}, "write either"),
    ("trim-topic", {"topic": "orders", "before_offset": -1}, "write a number from 0 to"),
    ("trim-topic", {"topic": "orders", "before_time": "yesterday"}, "is not a time"),
    ("trim-topic", {"topic": "orders", "before_offset": 0}, "has no records before that"),
    ("trim-topic", {"topic": "orders", "before_offset": 1, "partitions": "2"}, "no partition 2"),
    ("trim-topic", {"topic": "orders", "before_offset": 1, "partitions": "x"}, "write 0,1,2"),
    ("delete-topic", {"topic": "orders", "confirm": "order"}, "write the name of the topic here"),
    ("delete-topic", {"topic": "none", "confirm": "none"}, "there is no topic none"),
    ("delete-topics", {"topics": " \n"}, "write at least one topic"),
    ("delete-topics", {"topics": "orders\ncopies\norders", "confirm": 3}, "that these 2 topics"),
    ("delete-topics", {"topics": "orders", "confirm": 2}, "write 1 to confirm that this topic is"),
    ("delete-topics", {"topics": "orders\n" * 1001, "confirm": 1}, "at most 1,000 lines"),
    ("delete-topics", {"topics": f"{'x' * 249}\n" * 132, "confirm": 1}, "more than 32,768 chara"),
    ("delete-topics", {"topics": "orders\nnone", "confirm": 2}, "there is no topic none"),
    ("delete-topics", {"topics": EVIL, "confirm": 1}, "<script>"),
    # groups
    ("reset-offsets", {"group": "none", "to": "start"}, "has no committed offsets: name a topic"),
    ("reset-offsets", {"group": "billing", "to": "offset"}, "a value is missing"),
    ("reset-offsets", {"group": "billing", "to": "start", "value": "1"}, "needs no value"),
    ("reset-offsets", {"group": "billing", "to": "offset", "value": "-1"}, "from 0 to"),
    ("reset-offsets", {"group": "billing", "to": "offset", "value": "x"}, "not a whole number"),
    ("reset-offsets", {"group": "billing", "to": "time", "value": "noon"}, "is not a time"),
    ("reset-offsets", {"group": "billing", "to": "end", "topics": "none"}, "no topic none"),
    ("reset-offsets", {"group": "billing", "to": "end", "topics": "orders:7"}, "no partition 7"),
    ("reset-offsets", {"group": "billing", "to": "end", "topics": ":1"}, "names no topic"),
    ("reset-offsets", {"group": "billing", "to": "end", "topics": "a:b"}, "write 0,1,2"),
    ("reset-offsets", {"group": "workers", "to": "shift", "value": "1"}, "is a share group"),
    (
        "reset-offsets",
        {"group": "billing", "to": "shift", "value": 1, "topics": "copies"},
        "no committed offsets there to move",
    ),
    ("delete-group", {"group": "billin"}, "did you mean billing?"),
    ("delete-group", {"group": EVIL}, "there is no group <script>"),
    ("delete-offsets", {"group": "billing"}, "write at least one topic"),
    ("delete-offsets", {"group": "billing", "topics": "copies"}, "no committed offsets in copies"),
    (
        "delete-offsets",
        {"group": "billing", "topics": "orders:0,99"},
        "no committed offsets in partitions 99 of orders",
    ),
    ("delete-offsets", {"group": "workers", "topics": "orders:0"}, "without partitions"),
    ("remove-members", {"group": "billing"}, "has no members"),
    ("remove-members", {"group": "billing", "members": "m"}, "has no member m"),
    ("remove-members", {"group": "workers"}, "it is a share group"),
    ("remove-members", {"group": "none"}, "there is no group none"),
    # messages
    ("produce-record", {"topic": "none"}, "there is no topic none"),
    (
        "produce-record",
        {"topic": "orders", "partition": 2},
        "topic orders of cluster test has partitions 0 to 1",
    ),
    ("produce-record", {"topic": "latest", "partition": 1}, "test has only partition 0"),
    ("produce-record", {"topic": "orders", "partition": -1}, "write a number from 0 to"),
    ("produce-record", {"topic": "orders", "value_form": "json", "value": "{"}, "is not JSON"),
    ("produce-record", {"topic": "orders", "value_form": "hex", "value": "0"}, "a row of bytes"),
    ("produce-record", {"topic": "orders", "key": "\ud800"}, "lone surrogate"),
    ("produce-record", {"topic": "orders", "headers": "a"}, "is no header: write NAME=VALUE"),
    ("produce-record", {"topic": "orders", "headers": "[1]"}, "a header is an object"),
    ("produce-record", {"topic": "orders", "headers": "a=1\n" * 101}, "at most 100 headers"),
    ("produce-record", {"topic": "orders", "value": "a" * (MOST_BYTES + 1)}, "1,048,576 bytes"),
    (
        "produce-record",
        {"topic": "orders", "value": "v", "value_form": "null"},
        "“Value is” says “Null”",
    ),
    ("resend-record", {**SOURCE, "value": "v"}, "“Value is” says “As in the record”"),
    ("resend-record", {**SOURCE, "key": "k"}, "a key is entered, but “Key is”"),
    ("resend-record", {**SOURCE, "headers": "a=1"}, "headers are entered, but “Headers are”"),
    ("resend-record", {**SOURCE, "source_offset": 99}, "there is no record with this offset"),
    ("resend-record", {**SOURCE, "source_topic": "none"}, "there is no topic none"),
    ("resend-record", {**SOURCE, "source_partition": 9}, "there is no partition 9"),
    ("copy-records", {"source": "orders", "topic": "orders"}, "cannot be copied to itself"),
    ("copy-records", {"source": "orders", "topic": "none"}, "there is no topic none"),
    ("copy-records", {"source": "latest", "topic": "copies"}, "has no committed records"),
    (
        "copy-records",
        {"source": "orders", "topic": "copies", "from_offset": 1, "from_time": "1h"},
        "write either an offset or a time",
    ),
    (
        "copy-records",
        {"source": "orders", "topic": "latest", "keep_partitions": "yes"},
        "topic latest has no partition 1",
    ),
    ("copy-records", {"source": "orders", "topic": "copies", "most": 0}, "from 1 to"),
    # configs
    ("alter-topic-configs", {"topic": "orders"}, "write at least one config"),
    ("alter-topic-configs", {"topic": "none", "set": "a=1"}, "there is no topic none"),
    (
        "alter-topic-configs",
        {"topic": "orders", "set": "retention.mss=1"},
        "topics have no config retention.mss; did you mean retention.ms?",
    ),
    ("alter-topic-configs", {"topic": "orders", "unset": "<b>"}, "topics have no config <b>"),
    ("alter-topic-configs", {"topic": "orders", "set": "retention.ms=x"}, "INVALID_CONFIG"),
    (
        "alter-topic-configs",
        {"topic": "orders", "set": "retention.ms=1", "unset": "retention.ms"},
        "retention.ms is named twice",
    ),
    ("alter-topic-configs", {"topic": "orders", "unset": "retention.ms"}, "nothing would change"),
    ("alter-topic-configs", {"topic": "latest", "set": "cleanup.policy=compact"}, "nothing would"),
    ("alter-topic-configs", {"topic": "orders", "secret_name": "a"}, "its name and its value"),
    ("alter-broker-configs", {"broker": "x", "set": "a=1"}, "write its id, or all"),
    ("alter-broker-configs", {"broker": "7", "set": "a=1"}, "there is no broker 7"),
    ("alter-broker-configs", {"broker": "1", "set": "node.id=7"}, "node.id"),
    (
        "alter-broker-configs",
        {"broker": "1", "set": "ssl.key.password=x"},
        "ssl.key.password is a secret",
    ),
    ("alter-broker-loggers", {"broker": 1}, "write at least one logger"),
    ("alter-broker-loggers", {"broker": 1, "set": "root=LOUD"}, "is not a level: write TRACE"),
    ("alter-broker-loggers", {"broker": 1, "set": "none=INFO"}, "broker 1 has no logger none"),
    ("alter-broker-loggers", {"broker": 1, "unset": "root"}, "root has no parent logger"),
    ("alter-broker-loggers", {"broker": 1, "set": "a=INFO", "unset": "a"}, "a is named twice"),
    ("alter-group-configs", {"group": "g", "set": "a=1"}, "groups have no config a"),
    ("alter-client-metrics", {"subscription": "m", "set": "a=1"}, "client metrics have no config"),
    ("alter-client-metrics", {"subscription": "m", "set": "interval.ms=1"}, "interval must be"),
]


async def test_wrong_values_are_refused_and_change_nothing(open_cluster):
    async with open_cluster() as c:
        await snapshot_when(c, lambda s: "orders" in s.topics)
        before = await list_topics(c.client)
        for kind, values, text in REFUSED:
            with pytest.raises((ChangeError, ClientError)) as caught:
                await prepared(c, kind, **values)
            assert text in str(caught.value), (kind, values)
        assert await list_topics(c.client) == before
