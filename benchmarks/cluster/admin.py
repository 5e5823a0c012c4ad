"""Administration of measured clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.support.brokers.brokers import Broker

PATIENCE_S = 300.0  # Apache Kafka needs a minute for 10,000 partitions
_PREFERRED = 0


def until(condition: Callable[[], bool], *, poll_s: float = 0.05) -> None:
    eventually(condition, timeout_s=PATIENCE_S, poll_s=poll_s)


def await_served(port: int, topic: str, partition: int = 0) -> None:
    """Wait until the broker at a port serves a partition, which others may know earlier."""
    client = BlockingClient(("127.0.0.1", port), timeout_s=PATIENCE_S)
    partitions = [{"partition_index": partition, "timestamp": -1}]
    request = {"replica_id": -1, "topics": [{"name": topic, "partitions": partitions}]}

    def is_served() -> bool:
        (result,) = client.ask(ApiKey.LIST_OFFSETS, 1, request).topics[0].partitions
        return not result.error_code

    until(is_served, poll_s=0.01)
    client.close()


class Admin:
    """A connection to one broker, whose metadata may differ from others' for a moment."""

    def __init__(self, broker: Broker) -> None:
        self._client = BlockingClient(("127.0.0.1", broker.port), timeout_s=PATIENCE_S)

    def close(self) -> None:
        self._client.close()

    def brokers(self) -> set[int]:
        answer = self._client.ask(ApiKey.METADATA, 9, {"topics": []})
        return {broker.node_id for broker in answer.brokers}

    def ports(self) -> dict[int, int]:
        answer = self._client.ask(ApiKey.METADATA, 9, {"topics": []})
        return {broker.node_id: broker.port for broker in answer.brokers}

    def partitions(self, topic: str) -> list[Any]:
        """Return a topic's partitions, in order; none without the topic."""
        request = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        (metadata,) = self._client.ask(ApiKey.METADATA, 9, request).topics
        return sorted(metadata.partitions, key=lambda partition: int(partition.partition_index))

    def create(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        """Create a topic with these replicas, whose first ones lead."""
        placed = [
            {"partition_index": index, "broker_ids": list(nodes)}
            for index, nodes in enumerate(replicas)
        ]
        new = {"name": topic, "num_partitions": -1, "replication_factor": -1}
        request = {"topics": [{**new, "assignments": placed}], "timeout_ms": 120_000}
        answer = self._client.ask(ApiKey.CREATE_TOPICS, 5, request)
        assert answer.topics[0].error_code == 0, answer

    def await_replicas(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        """Wait until first replicas lead and all are in sync."""

        def are_there() -> bool:
            partitions = self.partitions(topic)
            return len(partitions) == len(replicas) and all(
                partition.leader_id == nodes[0] and set(partition.isr_nodes) == set(nodes)
                for partition, nodes in zip(partitions, replicas, strict=True)
            )

        until(are_there)

    def delete(self, topic: str) -> None:
        request = {"topic_names": [topic], "timeout_ms": 60_000}
        answer = self._client.ask(ApiKey.DELETE_TOPICS, 5, request)
        assert answer.responses[0].error_code == 0, answer

    def reassign(self, topic: str, replicas: Sequence[int]) -> None:
        partitions = [{"partition_index": 0, "replicas": list(replicas)}]
        request = {"timeout_ms": 60_000, "topics": [{"name": topic, "partitions": partitions}]}
        answer = self._client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
        assert answer.error_code == 0, answer
        assert answer.responses[0].partitions[0].error_code == 0, answer

    def elect_preferred(self, topic: str) -> None:
        topics = [{"topic": topic, "partitions": [0]}]
        request = {"election_type": _PREFERRED, "timeout_ms": 60_000, "topic_partitions": topics}
        answer = self._client.ask(ApiKey.ELECT_LEADERS, 2, request)
        assert answer.error_code == 0, answer
