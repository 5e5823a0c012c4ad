"""Requests of dry runs, also on a cluster of fenced brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from wirebroker.client.checks.dry_runs import check_deletable_topics, check_moves
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient


class ScriptedCluster:
    """A cluster whose brokers 1 and 2 are both fenced; it counts requests."""

    def __init__(self) -> None:
        self.asked: list[ApiKey] = []

    async def request(self, key: ApiKey, _body: Any) -> Any:
        self.asked.append(key)
        if key is ApiKey.METADATA:
            return SimpleNamespace(topics=[])
        brokers = [SimpleNamespace(broker_id=broker_id) for broker_id in (1, 2)]
        return SimpleNamespace(error_code=0, error_message=None, brokers=brokers)

    async def broker_ids(self) -> list[int]:
        return []


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster()


async def test_plan_is_checked_with_one_broker_list_request(
    cluster: ScriptedCluster,
) -> None:
    client = cast("KafkaClient", cluster)
    moves = {TopicPartition("orders", number): [1, 2] for number in range(100)}
    await check_moves(client, moves)
    assert cluster.asked == [ApiKey.DESCRIBE_CLUSTER] * 2
    with pytest.raises(ClientError, match=r"orders-99 cannot be moved.*broker 7") as refused:
        await check_moves(client, moves | {TopicPartition("orders", 99): [1, 7]})
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


async def test_deletable_topics_are_checked_while_all_brokers_are_fenced(
    cluster: ScriptedCluster,
) -> None:
    await check_deletable_topics(cast("KafkaClient", cluster), ["orders"])
    assert cluster.asked == [ApiKey.METADATA]
