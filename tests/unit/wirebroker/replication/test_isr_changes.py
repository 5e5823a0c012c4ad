"""The ISR changes that leaders request from the controller, by broker incarnation."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.records.clocks import HandClock
from tests.support.replicas.replica_cluster import Node
from tests.support.replicas.roles import lead
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import response_message
from wirebroker.replication.isr_changes import IsrChanges

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.replica.partition import Partition

LEADERS_EPOCH = 10


def fetched(partition: Partition, offset: int, *, broker_epoch: int) -> bool:
    """Record a Fetch of node 2; return whether it may join the ISR."""
    return partition.update_follower(
        2, fetch_offset=offset, log_start_offset=0, broker_epoch=broker_epoch
    )


class Controller:
    """A controller that ignores the first AlterPartition and changes something meanwhile."""

    def __init__(self, meanwhile: Any) -> None:
        self.asked: list[dict[int, int]] = []
        self._meanwhile = meanwhile

    async def ask(self, key: ApiKey, body: Any) -> Any:
        assert key is ApiKey.ALTER_PARTITION
        (topic,) = body(3)["topics"]
        (partition,) = topic["partitions"]
        members = partition["new_isr_with_epochs"]
        self.asked.append({member["broker_id"]: member["broker_epoch"] for member in members})
        if len(self.asked) == 1:
            self._meanwhile()
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        result = {"partition_index": 0, "error_code": int(ErrorCode.INELIGIBLE_REPLICA)}
        topics = [{"topic_id": topic["topic_id"], "partitions": [result]}]
        return response_message(key).struct_class(topics=topics)


async def test_restarted_follower_is_dropped_from_a_retried_isr_change(
    tmp_path: Path,
) -> None:
    """By the time of the retry the follower may have restarted (KIP-903)."""
    node = Node(1, tmp_path, HandClock())
    lead(node.partition, replicas=(1, 2), isr=(1,))
    node.append(b"a")
    assert fetched(node.partition, 1, broker_epoch=5)
    controller: Any = Controller(lambda: fetched(node.partition, 0, broker_epoch=6))
    lifecycle: Any = SimpleNamespace(node_id=1, broker_epoch=LEADERS_EPOCH)
    changes = IsrChanges(controller, lifecycle, clock=SystemClock())
    async with asyncio.timeout(PATIENCE_S):
        changes.add(node.partition, 2)
        await until(lambda: len(controller.asked) == 2)
        assert controller.asked == [{1: LEADERS_EPOCH, 2: 5}] * 2
        await until(lambda: node.partition.leading.change is None)  # type: ignore[union-attr]
    assert node.partition.leading is not None
    assert node.partition.leading.isr == (1,)
    await changes.stop()
    node.close()
