"""The last in-sync replica loses records while another one restarts (KIP-966)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.replicas.broker_cluster import Cluster, stored
from tests.support.tools.waiting import until
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.coordinator.controller.features.feature_control import (
    ELIGIBLE_LEADER_REPLICAS,
    feature_level,
)
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER

if TYPE_CHECKING:
    from pathlib import Path

ACKNOWLEDGED = 21
KEPT = 10


@pytest.mark.parametrize(("level", "lost"), [(1, 0), (0, ACKNOWLEDGED - KEPT)])
async def test_acknowledged_records_survive_a_lost_tail_during_a_restart(
    tmp_path: Path, level: int, lost: int
) -> None:
    async with Cluster(tmp_path, settings={"min.insync.replicas": "2"}) as cluster:
        cluster.write(feature_level(ELIGIBLE_LEADER_REPLICAS, level))
        cluster.create_topic((1, 2, 3))
        await until(lambda: all(_has_topic(cluster, node_id) for node_id in (1, 2, 3)))
        for number in range(KEPT):
            await cluster.leader().produce(b"%d" % number)
        log = tmp_path / "3" / "t-0" / "00000000000000000000.log"
        kept_bytes = log.stat().st_size
        await cluster.kill(1)
        await until(lambda: cluster.state().leader == 2)
        await until(lambda: cluster[2].partition().leading is not None)
        for number in range(KEPT, ACKNOWLEDGED):
            await cluster.leader().produce(b"%d" % number)

        await _stop(cluster, 2)  # a rolling restart
        assert cluster.state().isr == (3,)
        await cluster.kill(3)
        os.truncate(log, kept_bytes)
        assert cluster.state().leader == NO_LEADER
        await cluster.start(3)
        await cluster.start(2)
        await until(lambda: set(cluster.state().isr) == {2, 3})
        remaining = sum(
            1 for _ in iterate_batches(memoryview(stored(cluster.leader().partition())))
        )
        assert ACKNOWLEDGED - remaining == lost


def _has_topic(cluster: Cluster, node_id: int) -> bool:
    return bool(cluster[node_id].replicas.find("t", b"", by_id=False)[0])


async def _stop(cluster: Cluster, node_id: int) -> None:
    cluster.hear_of_all()
    await cluster[node_id].stop()
    cluster.forget_sessions()
