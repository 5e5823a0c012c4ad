"""The content that earlier versions write into directories, and that later versions check."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
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

from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from tests.upgrade.fixtures import Fixture

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
COMMITTED_PAYMENTS: Final = [b"paid", b"paid too"]
OPEN_PAYMENT: Final = b"never committed"
TRANSACTIONAL_GROUP: Final = "accounting"
_TRANSACTIONAL_OFFSETS: Final = {0: 3, 1: 5, 2: 8}


def orders(partition: int) -> list[bytes]:
    """Return the records of a partition of `orders`, in order."""
    return [
        f"{codec} {partition} {number}".encode()
        for codec in _CODECS
        for number in range(_ORDERS_EACH)
    ]


def write(bootstrap: str, fixture: Fixture) -> None:
    """Write it all; the last transaction stays open, and its producer is abandoned."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(topic, PARTITIONS[topic], fixture.node_count, config=configs)
        for topic, configs in CONFIGS.items()
    ]
    for future in admin.create_topics(topics, operation_timeout=WAIT_S).values():
        future.result(WAIT_S)
    for added in admin.create_acls([*fixture.acls]).values() if fixture.acls else ():
        added.result(WAIT_S)
    _write_orders(bootstrap)
    latest = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        latest.produce("latest", f"{number}".encode(), key=f"key {number % 2}".encode())
    assert latest.flush(WAIT_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.commit(offsets=_positions(COMMITTED), asynchronous=False)
    consumer.close()
    _write_payments(bootstrap, has_offsets=fixture.has_transactional_offsets)


def _positions(offsets: dict[int, int]) -> list[TopicPartition]:
    return [TopicPartition("orders", *position) for position in offsets.items()]


def _write_orders(bootstrap: str) -> None:
    for codec in _CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for partition in range(PARTITIONS["orders"]):
            for value in orders(partition):
                if value.startswith(codec.encode()):
                    producer.produce("orders", value, partition=partition)
        assert producer.flush(WAIT_S) == 0


def _write_payments(bootstrap: str, *, has_offsets: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for value in COMMITTED_PAYMENTS:
        producer.produce("payments", value)
    if has_offsets:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": TRANSACTIONAL_GROUP})
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(_positions(_TRANSACTIONAL_OFFSETS), group, WAIT_S)
        consumer.close()
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce("payments", OPEN_PAYMENT)
    assert producer.flush(WAIT_S) == 0


def check(bootstrap: str, fixture: Fixture) -> None:
    """Check records, committed offsets, configs, ACLs; then abort the transaction."""
    for partition in range(PARTITIONS["orders"]):
        assert read(bootstrap, "orders", partition) == orders(partition)
    values = read(bootstrap, "latest", 0)
    assert values[-2:] == [b"8", b"9"]
    _check_admin(bootstrap, fixture)
    assert _committed(bootstrap, GROUP) == COMMITTED
    if fixture.has_transactional_offsets:
        assert _committed(bootstrap, TRANSACTIONAL_GROUP) == _TRANSACTIONAL_OFFSETS
    assert OPEN_PAYMENT in read(bootstrap, "payments", 0, isolation="read_uncommitted")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(WAIT_S)  # aborts what is open
    producer.begin_transaction()
    producer.produce("payments", b"of today")
    producer.commit_transaction(WAIT_S)
    wait_for_payments(bootstrap, [*COMMITTED_PAYMENTS, b"of today"])


def _committed(bootstrap: str, group: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    partitions = [TopicPartition("orders", partition) for partition in COMMITTED]
    committed = consumer.committed(partitions, timeout=WAIT_S)
    consumer.close()
    return {partition.partition: partition.offset for partition in committed}


def wait_for_payments(bootstrap: str, payments: list[bytes]) -> None:
    """Wait until the committed records of `payments` are these: markers follow the commit."""
    eventually(partial(_are_committed, bootstrap, payments), timeout_s=WAIT_S)


def _are_committed(bootstrap: str, payments: list[bytes]) -> bool:
    return read(bootstrap, "payments", 0) == payments


def _check_admin(bootstrap: str, fixture: Fixture) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=WAIT_S).topics
    assert {name: len(topics[name].partitions) for name in PARTITIONS} == PARTITIONS
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in CONFIGS]
    for resource, future in admin.describe_configs(resources).items():
        configs = {
            name: entry.value
            for name, entry in future.result(WAIT_S).items()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }
        assert configs == CONFIGS[resource.name]
    if fixture.acls:
        any_name: Any = None  # the stub has only str
        any_acl = AclBindingFilter(
            ResourceType.ANY,
            any_name,
            ResourcePatternType.ANY,
            any_name,
            any_name,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        assert set(admin.describe_acls(any_acl).result(WAIT_S)) == set(fixture.acls)


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
