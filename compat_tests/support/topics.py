"""Create topics with configs through confluent-kafka, before a test uses them."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from compat_tests.clients.message import WAIT_S
from compat_tests.conftest import new_topic_name
from tests.support.tools.waiting import eventually

# For old timestamps: a broker's first retention check comes 30 s after its start.
KEPT = {"retention.ms": "-1"}


def create(
    bootstrap: str,
    topic: str,
    *,
    partitions: int = 1,
    replicas: int = 1,
    configs: dict[str, str] | None = None,
) -> None:
    settings = configs or {}
    new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=settings)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new], request_timeout=WAIT_S)[topic].result()
    eventually(lambda: topic in names(admin))


def create_new(bootstrap: str) -> str:
    topic = new_topic_name()
    create(bootstrap, topic, partitions=1)
    return topic


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic], request_timeout=WAIT_S)[topic].result()
    eventually(lambda: topic not in names(admin))


def grow(bootstrap: str, topic: str, *, partitions: int) -> None:
    """Add partitions to a topic, up to this number."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewPartitions(topic, partitions)]
    admin.create_partitions(new, request_timeout=WAIT_S)[topic].result()
    eventually(
        lambda: len(admin.list_topics(timeout=WAIT_S).topics[topic].partitions) == partitions
    )


def names(admin: AdminClient) -> list[str]:
    return list(admin.list_topics(timeout=WAIT_S).topics)
