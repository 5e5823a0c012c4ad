"""Brokers added to a cluster of wirebrokers take over all partitions under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.own_controller import own_cluster
from compat_tests.cluster.replicated_load import WAIT_S, Load, create, isrs, read, stored, verify
from tests.support.cli.verbs import Verbs
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long

TOPICS = ["a", "b"]


def test_records_moved_to_added_brokers_are_neither_lost_nor_duplicated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = own_cluster(tmp_path / "cluster", {"file.delete.delay.ms": "0"}, has_broker=True)
    try:
        cluster.wirebroker(2)
        create(cluster, {"a": [101, 2], "b": [2, 101]})
        verbs = Verbs(cluster.bootstrap, capsys)
        with Load(cluster, TOPICS) as load:
            load.go_on()
            for node_id in (3, 4):
                cluster.wirebroker(node_id)
            plan = tmp_path / "plan.json"
            plan.write_text(verbs.run("reassign", "plan", *TOPICS, "--brokers", "3,4").out)
            verbs.do("reassign", "execute", str(plan), "--yes")
            eventually(
                lambda: verbs.run("reassign", "verify", str(plan)).status == 0, timeout_s=WAIT_S
            )
            load.go_on()
        assert not load.failed
        assert set(map(frozenset, isrs(cluster, TOPICS).values())) == {frozenset({3, 4})}
        for topic, acknowledged in load.acknowledged.items():
            values = read(cluster, topic)
            assert len(values) == len(set(values))
            assert acknowledged <= set(values)
            assert stored(cluster, 3, topic) == stored(cluster, 4, topic) != b""
            for former_id in (2, 101):
                folder = cluster.brokers[former_id].data_dirs[0]
                eventually(lambda: not (folder / f"{topic}-0").exists())  # noqa: B023 - at once
        for node_id in (4, 3, 2):  # the node with the controller comes last
            cluster.brokers[node_id].stop()
        verify(cluster, [])
    finally:
        cluster.stop()
