"""Each node of a cluster has each fault while a load writes to replicas in every order."""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.misfortunes import Misfortunes
from compat_tests.cluster.own_controller import own_cluster
from compat_tests.cluster.quorum.active_controller import ActiveController, three_voters
from compat_tests.cluster.replicated_load import QUICK, WAIT_S, Load, check, create, verify, views
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.misfortunes import Victim
    from compat_tests.cluster.nodes import Cluster

pytestmark = pytest.mark.java


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_mixed_cluster_keeps_records_under_faults(
    start_cluster: StartCluster, request: pytest.FixtureRequest
) -> None:
    cluster = start_cluster(settings=QUICK)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    cluster.wirebroker(3)
    _suffer(cluster, request.config.getoption("--seed"))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_wirebroker_cluster_keeps_records_under_faults(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster = own_cluster(tmp_path, QUICK)
    try:
        for node_id in (1, 2, 3):
            cluster.wirebroker(node_id)
        _suffer(cluster, request.config.getoption("--seed"))
    finally:
        cluster.stop()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("java_broker", [None, 1], ids=["own", "mixed"])
def test_cluster_with_three_voters_keeps_records_under_faults(
    tmp_path: Path, request: pytest.FixtureRequest, java_broker: int | None
) -> None:
    with three_voters(tmp_path, QUICK, java_broker=java_broker) as quorum:
        active = ActiveController(quorum)
        _suffer(quorum, request.config.getoption("--seed"), active)
        assert len(active.victims) == 3, "killed, frozen and restarted"


def _suffer(cluster: Cluster, seed: int, *more: Victim) -> None:
    """Produce to replicas in every order while each node, controllers included, has each fault."""
    assignment = {"-".join(map(str, replicas)): replicas for replicas in permutations((1, 2, 3))}
    create(cluster, assignment)
    nodes = [*cluster.brokers.values(), *cluster.controllers.values(), *more]
    misfortunes = Misfortunes(nodes, random.Random(seed))
    try:
        with Load(cluster, list(assignment)) as load:
            while misfortunes.counts.total() < misfortunes.total:
                load.go_on()
                misfortunes.begin()
                eventually(lambda: misfortunes.has_lasted, timeout_s=WAIT_S)
                misfortunes.end()
    except AssertionError as error:
        misfortunes.end()
        error.add_note(views(cluster, list(assignment)))
        raise
    finally:
        misfortunes.end()
        print(  # noqa: T201
            f"\nseed {seed}: {load.count} records acknowledged, {dict(misfortunes.counts)}"
        )
    check(cluster, load)
    verify(cluster, list(assignment))
