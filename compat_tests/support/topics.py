"""Topics made with their configs before a test writes to them, through confluent-kafka."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clients.message import WAIT_S
from compat_tests.conftest import new_topic_name
from tests.support.tools.waiting import eventually

# For records with timestamps of years ago: 30 s after its start a broker looks for what is too old.
KEPT = {"retention.ms": "-1"}


def create(
    bootstrap: str,
    topic: str,
    *,
    partitions: int = 1,
    replicas: int = 1,
    configs: dict[str, str] | None = None,
) -> None:
    """Create a topic and return when it has leaders."""
    settings = configs or {}
    new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=settings)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new], request_timeout=WAIT_S)[topic].result()
    eventually(lambda: topic in names(admin))


def create_new(bootstrap: str) -> str:
    """Create a topic of one partition whose name nobody else has; return it."""
    topic = new_topic_name()
    create(bootstrap, topic, partitions=1)
    return topic


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic and return when Metadata no longer has it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic], request_timeout=WAIT_S)[topic].result()
    eventually(lambda: topic not in names(admin))


def names(admin: AdminClient) -> list[str]:
    """Return the names of all topics."""
    return list(admin.list_topics(timeout=WAIT_S).topics)
