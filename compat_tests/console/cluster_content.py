"""What the console's tests show: topics, records, groups, a transaction, ACLs, users, quotas."""

from __future__ import annotations

import asyncio
import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.client.configs.configs import TOPIC, alter_configs
from wirebroker.client.configs.quotas import alter_quotas
from wirebroker.client.groups.groups import commit
from wirebroker.client.security.acls import AccessRule, create_acls
from wirebroker.client.security.users import NewPassword, set_user
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.console.model.settings import cluster_of_flag, open_client

if TYPE_CHECKING:
    from collections.abc import Iterator

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
ORDERS = 3000
# What the idle group has committed in each partition of orders.
IDLE_OFFSET = 10
# The one record with this header.
TRACE = "4bf92f3577b34da6"
_SCRAM_SHA_512 = 2


class Content(NamedTuple):
    """Names in the cluster."""

    idle_group: str = "billing"
    live_group: str = "warehouse"
    topic: str = "orders"
    binary_topic: str = "inventory"
    transactional_id: str = "payments-writer-1"


@contextlib.contextmanager
def furnished(bootstrap: str) -> Iterator[Content]:
    """Create the content; a group's member and an open transaction last as long as the context."""
    content = Content()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic(content.topic, 6, 1),
        NewTopic(content.binary_topic, 2, 1),
        NewTopic("payments", 1, 1),
        NewTopic("hostile", 1, 1),
        NewTopic("tailed", 1, 1),
    ]
    for created in admin.create_topics(topics).values():
        created.result(30)
    _produce(bootstrap, content)
    # It waits for the coordinators of groups, which a new broker does not have at once.
    consumer = _joined(bootstrap, content)
    # In a thread: this one may run the event loop of a browser's driver.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _administer(bootstrap, content)).result()
    transaction = _open_transaction(bootstrap, content)
    try:
        yield content
    finally:
        consumer.close()
        transaction.abort_transaction(30)


def _produce(bootstrap: str, content: Content) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(ORDERS):
        order = {"id": number, "customer": "Émile", "order": {"total": number % 400}}
        trace = TRACE if number == 1234 else f"{number:016x}"
        producer.produce(
            content.topic,
            key=f"customer-{number % 50}",
            value=json.dumps(order, ensure_ascii=False),
            headers=[("trace-id", trace.encode()), ("source", b"shop")],
        )
        producer.poll(0)
    for number in range(40):
        producer.produce(content.binary_topic, key=b"\xff\x00", value=bytes(range(number, 80)))
    producer.produce(content.binary_topic, key="deleted", value=None)
    producer.produce("hostile", key=EVIL, value=EVIL, headers=[(EVIL, EVIL.encode())])
    assert producer.flush(60) == 0


async def _administer(bootstrap: str, content: Content) -> None:
    async with open_client(cluster_of_flag(f"c={bootstrap}"), SystemClock()) as client:
        await alter_configs(client, TOPIC, content.topic, {"retention.ms": "86400000"})
        idle = {TopicPartition(content.topic, partition): IDLE_OFFSET for partition in range(6)}
        await commit(client, content.idle_group, idle)
        await commit(client, EVIL, {TopicPartition("hostile", 0): 0})
        rules = [
            AccessRule("topic", content.topic, "literal", "User:anna", "*", "read", "allow"),
            AccessRule("group", "ware", "prefixed", "User:anna", "*", "read", "allow"),
            AccessRule("topic", "secret", "literal", "User:bob", "10.0.0.1", "all", "deny"),
        ]
        await create_acls(client, rules)
        await set_user(client, "anna", _SCRAM_SHA_512, NewPassword("a long password", 4096))
        await alter_quotas(client, {"user": "anna"}, {"producer_byte_rate": 1048576.0})
        await alter_quotas(client, {"client-id": None}, {"request_percentage": 50.0})


def _joined(bootstrap: str, content: Content) -> Consumer:
    """Return a member of a group that has read the topic's records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": content.live_group,
            "client.id": f"{content.live_group}-1",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([content.topic])
    read = 0

    def has_read() -> bool:
        nonlocal read
        read += len(consumer.consume(500, timeout=0.2))
        return read >= ORDERS

    eventually(has_read)
    consumer.commit(asynchronous=False)
    return consumer


def _open_transaction(bootstrap: str, content: Content) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": content.transactional_id,
            "transaction.timeout.ms": 900_000,  # the greatest that brokers allow
        }
    )
    producer.init_transactions(30)
    for is_last in (False, True):
        producer.begin_transaction()
        producer.produce("payments", key="order-1", value=json.dumps({"amount": 12}))
        assert producer.flush(30) == 0
        if not is_last:
            producer.commit_transaction(30)
    return producer
