"""Replicas on both kinds of brokers stay byte-identical through leader changes and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.replicated_load import (
    QUICK,
    Load,
    all_in_sync,
    check,
    create,
)

if TYPE_CHECKING:
    from compat_tests.cluster.conftest import StartCluster

pytestmark = pytest.mark.java


def test_java_and_wirebroker_replicate_each_other(start_cluster: StartCluster) -> None:
    cluster = start_cluster(settings=QUICK)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    cluster.wirebroker(3)
    assignment = {"java": (1, 2, 3), "ours": (2, 1, 3), "other": (3, 2, 1)}
    create(cluster, assignment)
    with Load(cluster, list(assignment)) as load:
        load.go_on()
        cluster.brokers[2].kill9()
        load.go_on()
        cluster.brokers[2].start()
        all_in_sync(cluster, list(assignment))
        cluster.brokers[1].kill9()
        load.go_on()
        cluster.brokers[1].start()
        all_in_sync(cluster, list(assignment))
        cluster.brokers[3].restart()
        load.go_on()
    check(cluster, load)
