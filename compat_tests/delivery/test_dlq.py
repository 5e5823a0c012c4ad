"""`wirebroker dlq` on a running broker."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import AcknowledgeType, Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.delivery.delivery_process import committed_records
from tests.support.tools.waiting import eventually
from wirebroker.delivery.client import dead_letter

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

RECORDS = 6


class Letters:
    """A topic with dead letters of two groups."""

    def __init__(self, bootstrap: str, source: str) -> None:
        self.bootstrap = bootstrap
        self.source = source
        self.topic = f"{source}.dead-letters"
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        topics = [NewTopic(name, 1, 1) for name in (self.source, self.topic)]
        for created in admin.create_topics(topics).values():
            created.result(60)
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        for number in range(RECORDS):
            producer.produce(source, b"%d" % number, b"k", headers={"trace": "a1"})
        producer.flush(60)
        for message in committed_records(bootstrap, source):
            group = "odd" if int(message.value()) % 2 else "even"
            producer.produce(**dead_letter(message, ValueError("no price"), group=group))
        assert producer.flush(60) == 0

    def verb(self, verb: str, *words: str) -> Any:
        return json.loads(run_verb(self.bootstrap, "dlq", verb, *words, "--output", "json"))

    def values(self, topic: str) -> list[bytes]:
        return [message.value() for message in committed_records(self.bootstrap, topic)]


def run_verb(bootstrap: str, *words: str) -> str:
    command = [sys.executable, "-m", "wirebroker", *words, "--bootstrap", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def letters(broker: Broker, topic: str) -> Letters:
    return Letters(broker.bootstrap, topic)


def test_letters_are_listed_and_shown(letters: Letters) -> None:
    rows = letters.verb("list")
    assert {"topic": letters.topic, "partitions": 1, "records": RECORDS} in rows
    shown = letters.verb("show", letters.topic, "--group", "odd", "--message", "price")
    assert [row["source_offset"] for row in shown] == ["1", "3", "5"]
    assert {(row["source"], row["message"]) for row in shown} == {
        (f"{letters.source}-0", "no price")
    }


def test_each_letter_is_redriven_once(letters: Letters) -> None:
    target = f"{letters.source}-again"
    admin = AdminClient({"bootstrap.servers": letters.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(target, 1, 1)])[target].result(60)
    counted = letters.verb("redrive", letters.topic, "--group", "odd")
    assert counted == {"matching": 3}
    first = letters.verb(
        "redrive", letters.topic, "--group", "odd", "--to", target, "--rate", "2", "--yes"
    )
    assert first["sent"] == {target: 3}
    assert letters.verb("redrive", letters.topic, "--group", "odd", "--yes")["sent"] == {}
    rest = letters.verb("redrive", letters.topic, "--to", target, "--yes")
    assert rest["sent"] == {target: 3}
    records = committed_records(letters.bootstrap, target)
    assert sorted(message.value() for message in records) == [b"%d" % n for n in range(RECORDS)]
    assert {message.key() for message in records} == {b"k"}
    assert all(message.headers() == [("trace", b"a1")] for message in records)


def test_the_progress_is_a_committed_offset(letters: Letters) -> None:
    letters.verb("redrive", letters.topic, "--group", "odd", "--yes")
    consumer = Consumer(
        {
            "bootstrap.servers": letters.bootstrap,
            "group.id": f"wirebroker-redrive.{letters.topic}",
            "log_level": 0,
        }
    )
    (place,) = consumer.committed([TopicPartition(letters.topic, 0)], timeout=60)
    consumer.close()
    assert (place.offset, place.metadata) == (0, "1,3,5")
    assert letters.values(letters.source)[RECORDS:] == [b"1", b"3", b"5"]


def test_letters_are_deleted(letters: Letters) -> None:
    assert letters.verb("purge", letters.topic)["partitions"][0]["records"] == RECORDS
    assert len(letters.values(letters.topic)) == RECORDS
    letters.verb("purge", letters.topic, "--yes")
    assert letters.values(letters.topic) == []


def reject_all(bootstrap: str, topic: str, group: str, count: int) -> None:
    """Reject the records of a topic as a member of a share group."""
    consumer = ShareConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    rejected = 0

    def has_all() -> bool:
        nonlocal rejected
        for message in consumer.poll(0.5):
            assert message.error() is None
            consumer.acknowledge(message, AcknowledgeType.REJECT)
            rejected += 1
        consumer.commit_sync(10.0)
        return rejected == count

    try:
        eventually(has_all, timeout_s=90)
    finally:
        consumer.close()


def test_letters_of_a_share_group_are_shown_and_redriven(broker: Broker, topic: str) -> None:
    # The prefix is the default of errors.deadletterqueue.topic.name.prefix.
    letters_topic, target = f"dlq.{topic}", f"{topic}-again"
    enabled = {"errors.deadletterqueue.group.enable": "true"}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    made = [NewTopic(topic, 1, 1), NewTopic(letters_topic, 1, 1, config=enabled)]
    for created in admin.create_topics([*made, NewTopic(target, 1, 1)]).values():
        created.result(60)
    configs = {
        "share.auto.offset.reset": "earliest",
        "errors.deadletterqueue.topic.name": letters_topic,
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    pairs = [f"{name}={value}" for name, value in configs.items()]
    group = f"workers-{topic}"
    run_verb(broker.bootstrap, "config", "set", "group", group, *pairs)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, b"k")
    assert producer.flush(60) == 0
    reject_all(broker.bootstrap, topic, group, RECORDS)
    eventually(
        lambda: len(committed_records(broker.bootstrap, letters_topic)) == RECORDS, timeout_s=90
    )
    listed = json.loads(run_verb(broker.bootstrap, "dlq", "list", "--output", "json"))
    assert {"topic": letters_topic, "partitions": 1, "records": RECORDS} in listed
    words = (letters_topic, "--output", "json")
    shown = json.loads(run_verb(broker.bootstrap, "dlq", "show", *words))
    assert {(row["source"], row["group"]) for row in shown} == {(f"{topic}-0", group)}
    run_verb(broker.bootstrap, "dlq", "redrive", letters_topic, "--to", target, "--yes")
    again = [record.value() for record in committed_records(broker.bootstrap, target)]
    assert again == [b"%d" % number for number in range(RECORDS)]
