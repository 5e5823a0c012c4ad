"""A Metadata request creates internal topics with their own partitions and configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from compat_tests.conftest import StartBroker

# Neither the default of new topics nor that of internal ones.
_SETTINGS: Final = {
    "num.partitions": "2",
    "offsets.topic.num.partitions": "7",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.segment.bytes": "2097152",
}
_DYNAMIC_TOPIC_CONFIG: Final = 1


@pytest.mark.parametrize(
    ("name", "partitions", "configs"),
    [
        (
            "__consumer_offsets",
            7,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": "1048576",
            },
        ),
        (
            "__transaction_state",
            5,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "1",
                "segment.bytes": "2097152",
                "unclean.leader.election.enable": "false",
            },
        ),
    ],
)
def test_metadata_request_creates_internal_topic_with_coordinator_settings(
    start_broker: StartBroker, name: str, partitions: int, configs: dict[str, str]
) -> None:
    broker = start_broker(_SETTINGS)
    client = AdminClient(
        {"bootstrap.servers": broker.bootstrap, "allow.auto.create.topics": "true"}
    )

    def count() -> int:
        return len(client.list_topics(name, timeout=30).topics[name].partitions)

    eventually(lambda: count() > 0)
    assert count() == partitions
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    described = client.describe_configs([resource])[resource].result(30)
    topic_configs = {
        entry.name: entry.value
        for entry in described.values()
        if entry.source == _DYNAMIC_TOPIC_CONFIG
    }
    assert topic_configs == configs
