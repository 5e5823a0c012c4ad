"""Waiting for replicas, and requests to one member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.replicas.broker_cluster import TOPIC_ID, Cluster, Member, stored
from tests.support.tools.waiting import until
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.replica.partition import Partition


def are_equal(first: Partition, followers: Sequence[Partition]) -> bool:
    return all(
        follower.log.log_end_offset == first.log.log_end_offset
        and follower.log.high_watermark == first.log.high_watermark == first.log.log_end_offset
        for follower in followers
    )


async def until_equal(cluster: Cluster, *node_ids: int, index: int = 0) -> None:
    first, *followers = [cluster[node_id].partition(index=index) for node_id in node_ids]
    await until(lambda: are_equal(first, followers))
    for follower in followers:
        assert stored(follower) == stored(first)
        assert follower.log.leader_epochs.entries == first.log.leader_epochs.entries
        follower.check()
        follower.log.check()


def isr_of(leader: Member) -> tuple[int, ...]:
    leading = leader.partition().leading
    assert leading is not None
    return leading.isr


async def held(cluster: Cluster, *node_ids: int) -> None:

    def has(member: Member) -> bool:
        return bool(member.replicas.find("t", b"", by_id=False)[0])

    await until(lambda: all(has(cluster[node_id]) for node_id in node_ids))


async def fetch(member: Member, offset: int, version: int = 12, **fields: Any) -> Any:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    for name in ("current_leader_epoch", "last_fetched_epoch", "log_start_offset"):
        if name in fields:
            partition[name] = fields.pop(name)
    body = {"topics": [{"topic": "t", "topic_id": TOPIC_ID, "partitions": [partition]}], **fields}
    answer = await member.ask(ApiKey.FETCH, version, body)
    return answer.responses[0].partitions[0]


async def delete_records(member: Member, offset: int, timeout_ms: int) -> tuple[int, int]:
    partition = {"partition_index": 0, "offset": offset}
    body = {"topics": [{"name": "t", "partitions": [partition]}], "timeout_ms": timeout_ms}
    answer = await member.ask(ApiKey.DELETE_RECORDS, 2, body)
    (result,) = answer.topics[0].partitions
    return result.error_code, result.low_watermark
