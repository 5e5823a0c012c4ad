"""What is written into the directories of an earlier version, and checked by later ones."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.waiting import eventually

WAIT_S: Final = 60.0
GROUP: Final = "billing"
COMMITTED: Final = {0: 7, 1: 11, 2: 0}
TRANSACTIONAL_ID: Final = "payments-1"
# Records are never too old: the directories are opened years later.
_KEPT: Final = {"retention.ms": "-1"}
CONFIGS: Final[dict[str, dict[str, str]]] = {
    "orders": {**_KEPT, "segment.bytes": "1048576", "max.message.bytes": "500000"},
    "latest": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"},
    "payments": _KEPT,
}
PARTITIONS: Final = {"orders": 3, "latest": 1, "payments": 1}
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_ORDERS_EACH: Final = 20
_COMMITTED_PAYMENTS: Final = [b"paid", b"paid too"]
_OPEN_PAYMENT: Final = b"never committed"
ACL: Final = (
    *(ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", "*"),
    *(AclOperation.WRITE, AclPermissionType.ALLOW),
)


def orders(partition: int) -> list[bytes]:
    """Return the records of a partition of `orders`, in order."""
    return [
        f"{codec} {partition} {number}".encode()
        for codec in _CODECS
        for number in range(_ORDERS_EACH)
    ]


def write(bootstrap: str, *, replicas: int, has_acls: bool) -> None:
    """Write it all; the last transaction stays open, and its producer is abandoned."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(topic, PARTITIONS[topic], replicas, config=configs)
        for topic, configs in CONFIGS.items()
    ]
    for future in admin.create_topics(topics, operation_timeout=WAIT_S).values():
        future.result(WAIT_S)
    if has_acls:
        (added,) = admin.create_acls([AclBinding(*ACL)]).values()
        added.result(WAIT_S)
    _write_orders(bootstrap)
    latest = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        latest.produce("latest", f"{number}".encode(), key=f"key {number % 2}".encode())
    assert latest.flush(WAIT_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    places = [TopicPartition("orders", *place) for place in COMMITTED.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
    _write_payments(bootstrap)


def _write_orders(bootstrap: str) -> None:
    for codec in _CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for partition in range(PARTITIONS["orders"]):
            for value in orders(partition):
                if value.startswith(codec.encode()):
                    producer.produce("orders", value, partition=partition)
        assert producer.flush(WAIT_S) == 0


def _write_payments(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for value in _COMMITTED_PAYMENTS:
        producer.produce("payments", value)
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce("payments", _OPEN_PAYMENT)
    assert producer.flush(WAIT_S) == 0


def check(bootstrap: str, *, has_acls: bool) -> None:
    """Check records, committed offsets, configs, ACLs; then abort the transaction."""
    for partition in range(PARTITIONS["orders"]):
        assert read(bootstrap, "orders", partition) == orders(partition)
    values = read(bootstrap, "latest", 0)
    assert values[-2:] == [b"8", b"9"]
    _check_admin(bootstrap, has_acls=has_acls)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    places = [TopicPartition("orders", partition) for partition in COMMITTED]
    found = consumer.committed(places, timeout=WAIT_S)
    consumer.close()
    assert {each.partition: each.offset for each in found} == COMMITTED
    assert _OPEN_PAYMENT in read(bootstrap, "payments", 0, isolation="read_uncommitted")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(WAIT_S)  # aborts what is open
    producer.begin_transaction()
    producer.produce("payments", b"of today")
    producer.commit_transaction(WAIT_S)
    expected = [*_COMMITTED_PAYMENTS, b"of today"]
    eventually(partial(_are_committed, bootstrap, expected), timeout_s=WAIT_S)


def _are_committed(bootstrap: str, payments: list[bytes]) -> bool:
    return read(bootstrap, "payments", 0) == payments


def _check_admin(bootstrap: str, *, has_acls: bool) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=WAIT_S).topics
    assert {name: len(topics[name].partitions) for name in PARTITIONS} == PARTITIONS
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in CONFIGS]
    for resource, future in admin.describe_configs(resources).items():
        given = {
            name: entry.value
            for name, entry in future.result(WAIT_S).items()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }
        assert given == CONFIGS[resource.name]
    if has_acls:
        any_name: Any = None  # the stub has only str
        anything = AclBindingFilter(
            ResourceType.ANY,
            any_name,
            ResourcePatternType.ANY,
            any_name,
            any_name,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        assert admin.describe_acls(anything).result(WAIT_S) == [AclBinding(*ACL)]


def read(
    bootstrap: str, topic: str, partition: int, *, isolation: str = "read_committed"
) -> list[bytes]:
    """Return the values of a partition, up to the end as the isolation level has it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[bytes] = []
    while True:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"{topic}-{partition} has no end"
        error = message.error()
        if error is not None:
            assert error.name() == "_PARTITION_EOF", error
            break
        values.append(message.value() or b"")
    consumer.close()
    return values
