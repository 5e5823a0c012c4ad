"""Group and transaction coordinators are killed, frozen and restarted under stock clients.

pytest compat_tests/cluster/nightly_coordinators.py --long --seed 7 -s

Stages of librdkafka's consumers and transactional producers, as in ../transactions/test_churn.py,
and Java's transactional producers continue while each broker in turn is killed (-9), frozen
(SIGSTOP) and restarted. All internal topics have three replicas, so each fault moves coordinators.
Each record must be in each stage once, no reader may see part of a transaction, and committed
offsets never decrease.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.misfortunes import Misfortunes
from compat_tests.cluster.own_controller import own_cluster
from compat_tests.cluster.quorum.active_controller import ActiveController, three_voters
from compat_tests.support import topics
from compat_tests.transactions.churn import Churn, write_ids
from compat_tests.transactions.churn_member import PARTITIONS
from compat_tests.transactions.committed_offsets import CommittedOffsets
from compat_tests.transactions.java_load import JavaLoad, read_committed
from compat_tests.transactions.settings import SETTINGS
from compat_tests.transactions.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.misfortunes import Victim
    from compat_tests.cluster.nodes import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(1800)]

MEMBERS = 2  # of each stage
NAMES = ("in", "middle", "out")
JAVA_TOPICS = ("java-a", "java-b")
RECORDS = 9_000
# Longer than a client waits for a frozen broker before it tries another.
REQUEST_S = 20
PATIENCE_S = 180.0
_REPLICATED = {
    **SETTINGS,
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "4000",
}


@pytest.fixture
def our_cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = own_cluster(tmp_path / "cluster", _REPLICATED)
    try:
        for node_id in (1, 2, 3):
            cluster.wirebroker(node_id)
        yield cluster
    finally:
        cluster.end()


def test_copy_is_exact_while_wirebroker_coordinators_move(
    our_cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    _copy_under_misfortunes(our_cluster, tmp_path, request.config.getoption("--seed"))


def test_copy_is_exact_while_coordinators_of_both_kinds_move(
    start_cluster: StartCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster = start_cluster(settings=_REPLICATED)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    cluster.wirebroker(3)
    _copy_under_misfortunes(cluster, tmp_path, request.config.getoption("--seed"))


@pytest.mark.parametrize("java_broker", [None, 1], ids=["own", "mixed"])
def test_copy_is_exact_while_coordinators_and_active_controllers_of_three_move(
    tmp_path: Path, request: pytest.FixtureRequest, java_broker: int | None
) -> None:
    with three_voters(tmp_path / "cluster", _REPLICATED, java_broker=java_broker) as quorum:
        active = ActiveController(quorum)
        seed = request.config.getoption("--seed")
        _copy_under_misfortunes(quorum, tmp_path, seed, active)
        assert len(active.victims) == 3, "killed, frozen and restarted"


def _copy_under_misfortunes(cluster: Cluster, folder: Path, seed: int, *more: Victim) -> None:
    choice = random.Random(seed)
    bootstrap = cluster.bootstrap
    for name in NAMES:
        topics.create(bootstrap, name, partitions=PARTITIONS, replicas=3)
    for name in JAVA_TOPICS:
        topics.create(bootstrap, name, replicas=3)
    write_ids(bootstrap, NAMES[0], RECORDS)
    watchers = [Watcher(bootstrap, name, PARTITIONS) for name in NAMES[1:]]
    stderr = folder / "members.stderr"
    churn = Churn(bootstrap, list(NAMES), choice, stderr, request_s=REQUEST_S)
    misfortunes = Misfortunes([*cluster.brokers.values(), *more], choice)
    java = JavaLoad(bootstrap, list(JAVA_TOPICS), 1, str(seed)).start()
    groups = {f"group-{stage.target}": stage.source for stage in churn.stages}
    offsets = CommittedOffsets(
        bootstrap, groups, PARTITIONS, has_zombies=lambda: misfortunes.has_zombies
    )
    expected = {b"%d" % number for number in range(RECORDS)}
    try:
        with offsets:
            for stage in churn.stages:
                for _ in range(MEMBERS):
                    churn.start(stage)
            _run(churn, watchers, misfortunes)
            java.finish()
        for watcher in watchers:
            watcher.check_transactions(churn.aborted)
            assert watcher.describe(expected) == (0, 0), "(lost, duplicated)"
        offsets.check()
        for name in JAVA_TOPICS:
            assert read_committed(bootstrap, name) == java.committed
    finally:
        misfortunes.end()
        print(  # noqa: T201
            f"\nseed {seed}: {[len(watcher.seen) for watcher in watchers]} of {RECORDS} records"
            f" seen after each stage, {dict(misfortunes.counts)}, {dict(churn.counts)},"
            f" {churn.errors},"
            f" {offsets.looks} looks at offsets, Java: {java.count} transactions,"
            f" {java.aborted} aborted, errors {java.errors}"
        )
        churn.close()
        for watcher in watchers:
            watcher.close()


def _run(churn: Churn, watchers: Sequence[Watcher], misfortunes: Misfortunes) -> None:
    """Let the members work and the brokers fail until all records are processed."""
    last = watchers[-1]
    # Progress starts and ends each fault, so it occurs during transactions.
    step = RECORDS // (2 * misfortunes.total + 2)
    progress, threshold, deadline = -1, step, time.monotonic() + PATIENCE_S
    while len(last.seen) < RECORDS or misfortunes.counts.total() < misfortunes.total:
        for watcher in watchers:
            watcher.read(0.02)
        churn.listen()
        churn.check()
        has_reached_threshold = len(last.seen) >= min(threshold, RECORDS)
        if misfortunes.is_under_way and (has_reached_threshold or misfortunes.has_lasted):
            misfortunes.end()
            threshold = len(last.seen) + step
        elif has_reached_threshold and misfortunes.counts.total() < misfortunes.total:
            misfortunes.begin()
            threshold = len(last.seen) + step
        if len(last.seen) > progress:
            progress, deadline = len(last.seen), time.monotonic() + PATIENCE_S
        assert time.monotonic() < deadline, f"{progress} of {RECORDS}\n{churn.last_words()}"
    misfortunes.end()
    for watcher in watchers:
        watcher.settle()
    churn.listen()
