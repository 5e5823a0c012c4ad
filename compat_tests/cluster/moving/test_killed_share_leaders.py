"""Share groups on a cluster of wirebrokers whose leaders and share coordinators are killed.

No record whose acceptance was confirmed is delivered again, and each acknowledged record is
accepted in the end. An acceptance whose answer was lost may have been stored.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.cluster.moving.share_readers import ShareReaders
from compat_tests.cluster.replicated_load import QUICK, WAIT_S, Load, create
from tests.support.brokers.own_trio import OwnTrio, own_trio
from tests.support.tools.waiting import eventually
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.patience(400)]

TOPICS = {"t": (2, 3, 1), "u": (3, 1, 2), "v": (2, 1, 3)}
SETTINGS = {
    **QUICK,
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.share.min.session.timeout.ms": "3000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.max.delivery.count.limit": "10",
    "group.share.delivery.count.limit": "10",
}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition while the members go on."""
    await asyncio.to_thread(eventually, condition, timeout_s=WAIT_S)


def leaders(trio: OwnTrio, topic: str) -> dict[int, int]:
    """Return the leader of each partition."""
    admin = AdminClient({"bootstrap.servers": trio.bootstrap})
    partitions = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
    return {index: partition.leader for index, partition in partitions.items()}


def are_in_sync(trio: OwnTrio) -> bool:
    admin = AdminClient({"bootstrap.servers": trio.bootstrap})
    topics = admin.list_topics(timeout=WAIT_S).topics
    return all(
        len(partition.isrs) == 3
        for topic in (*TOPICS, SHARE_GROUP_STATE)
        for partition in topics[topic].partitions.values()
    )


async def kill(trio: OwnTrio, node_id: int) -> None:
    """Kill a node that leads a partition of the data and of the share state; restart it."""
    before = leaders(trio, SHARE_GROUP_STATE)
    assert node_id in before.values()
    led = [topic for topic in TOPICS if leaders(trio, topic)[0] == node_id]
    assert led
    trio.brokers[node_id].kill9()
    await until(lambda: node_id not in leaders(trio, SHARE_GROUP_STATE).values())
    await until(lambda: all(leaders(trio, topic)[0] != node_id for topic in led))
    await asyncio.to_thread(trio.brokers[node_id].start)
    await until(lambda: are_in_sync(trio))


async def until_they_go_on(readers: ShareReaders) -> None:
    """Wait until the members have accepted 200 more records."""
    values = readers.deliveries.values
    least = len(values) + 200
    await until(lambda: len(values) > least)


async def test_confirmed_records_are_not_delivered_again_after_kills(tmp_path: Path) -> None:
    with own_trio(tmp_path, SETTINGS) as trio:
        create(trio, TOPICS)  # type: ignore[arg-type]  # only its address is used
        readers = ShareReaders(trio.bootstrap, "g", tuple(TOPICS), 3)
        await readers.begin_at_the_start(1)
        async with readers:
            deliveries = readers.deliveries
            with Load(trio, tuple(TOPICS)) as load:  # type: ignore[arg-type]
                await until(lambda: len(deliveries.values) > 200)
                await until(lambda: are_in_sync(trio))
                for node_id in (2, 3):
                    await kill(trio, node_id)
                    await until_they_go_on(readers)
                await asyncio.to_thread(load.go_on)
            assert not load.failed
            acknowledged = set().union(*load.acknowledged.values())
            await until(lambda: acknowledged <= deliveries.values | deliveries.unclear)
        assert not deliveries.repeated
