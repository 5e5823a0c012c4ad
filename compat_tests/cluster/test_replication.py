"""Replicas on brokers of either kind, the same to the byte, whoever leads, dies and comes back."""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.misfortunes import Misfortunes
from compat_tests.cluster.own_controller import own_cluster
from compat_tests.cluster.replicated_load import (
    QUICK,
    WAIT_S,
    Load,
    all_in_sync,
    check,
    create,
    verify,
)
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = pytest.mark.java


def test_java_and_wirebroker_lead_and_follow_each_other(start_cluster: StartCluster) -> None:
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


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_whoever_leads_is_killed_frozen_and_restarted(
    start_cluster: StartCluster, request: pytest.FixtureRequest
) -> None:
    cluster = start_cluster(settings=QUICK)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    cluster.wirebroker(3)
    _suffer(cluster, request.config.getoption("--seed"))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_wirebrokers_alone_are_killed_frozen_and_restarted(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster = own_cluster(tmp_path, QUICK)
    try:
        for node_id in (1, 2, 3):
            cluster.wirebroker(node_id)
        _suffer(cluster, request.config.getoption("--seed"))
    finally:
        cluster.stop()


def _suffer(cluster: Cluster, seed: int) -> None:
    """Produce to replicas in every order while each node meets each misfortune, controllers too."""
    assignment = {"-".join(map(str, each)): each for each in permutations((1, 2, 3))}
    create(cluster, assignment)
    nodes = [*cluster.brokers.values(), *cluster.controllers.values()]
    misfortunes = Misfortunes(nodes, random.Random(seed))
    try:
        with Load(cluster, list(assignment)) as load:
            while misfortunes.counts.total() < misfortunes.total:
                load.go_on()
                misfortunes.begin()
                eventually(lambda: misfortunes.has_lasted, timeout_s=WAIT_S)
                misfortunes.end()
    finally:
        misfortunes.end()
        print(  # noqa: T201
            f"\nseed {seed}: {load.count} records acknowledged, {dict(misfortunes.counts)}"
        )
    check(cluster, load)
    verify(cluster, list(assignment))
