"""Problems and their causes."""

from __future__ import annotations

from array import array

from wirebroker.console.model.cluster_state import ClusterState
from wirebroker.console.model.problems import problems_of
from wirebroker.console.model.samples import SlotNumbers, Window
from wirebroker.console.model.snapshot import (
    BrokerInfo,
    ClusterSnapshot,
    LogDirInfo,
    ProblemLevel,
    QuorumInfo,
    QuorumNode,
)
from wirebroker.console.model.topic_info import Figures, PartitionLayout, TopicLayout, topic_info

NOW_MS = 10_000_000
NO_FIGURES = Figures(Window(), None, Window(), None)


def broker(broker_id: int, **fields) -> BrokerInfo:
    info = BrokerInfo(
        broker_id,
        "host",
        9092,
        rack=None,
        is_fenced=False,
        is_controller=False,
        leader_count=0,
        replica_count=0,
        size_bytes=None,
        log_dirs=(),
        version=None,
    )
    return info._replace(**fields)


def problems(snapshot: ClusterSnapshot, state: ClusterState | None = None) -> list[tuple[str, str]]:
    found = problems_of(snapshot, state or ClusterState(), NOW_MS)
    assert all(problem.next_step for problem in found)
    return [(problem.kind, problem.what) for problem in found]


def cluster(*partitions: PartitionLayout, brokers=(1, 2)):
    layout = TopicLayout("orders", bytes(16), False, 0, partitions)
    info = topic_info(layout, NO_FIGURES, ())
    state = ClusterState()
    state.layouts = {"orders": layout}
    snapshot = ClusterSnapshot(
        "test",
        topics={"orders": info},
        brokers={broker_id: broker(broker_id) for broker_id in brokers},
        leaderless_count=info.leaderless_count,
        under_replicated_count=info.under_replicated_count,
    )
    return snapshot, state


def test_a_healthy_cluster_has_no_problems():
    assert problems(*cluster(PartitionLayout(1, 0, (1, 2), (1, 2), ()))) == []


def test_partitions_without_leaders_and_in_sync_replicas():
    snapshot, state = cluster(
        PartitionLayout(-1, 0, (1, 2), (1,), ()), PartitionLayout(2, 0, (1, 2), (2,), ())
    )
    assert problems(snapshot, state) == [
        ("partition", "1 partition has no leader and cannot be used, in orders"),
        ("partition", "2 partitions are under-replicated, in orders"),
    ]


def test_partitions_that_refuse_acks_all():
    snapshot, state = cluster(
        PartitionLayout(1, 0, (1, 2), (1,), ()), PartitionLayout(1, 0, (1, 2), (1, 2), ())
    )
    state.min_isr["orders"] = 2
    assert problems(snapshot, state) == [
        (
            "partition",
            "1 partition has fewer in-sync replicas than min.insync.replicas, so acks=all is"
            " refused, in orders",
        ),
        ("partition", "1 partition is under-replicated, in orders"),
    ]


def test_brokers_that_are_missing_fenced_or_unreachable():
    snapshot, state = cluster(PartitionLayout(1, 0, (1, 2, 3), (1, 2, 3), ()))
    snapshot = snapshot._replace(brokers={1: broker(1), 2: broker(2, is_fenced=True)})
    state.unreachable[1] = (0.0, "cannot reach broker 1 at host:9092: connection refused")
    assert problems(snapshot, state) == [
        ("broker", "cannot reach broker 1 at host:9092: connection refused"),
        ("broker", "broker 2 is fenced: the controller receives no heartbeats from it"),
        ("broker", "broker 3 holds replicas and is not running"),
    ]


def test_disks_that_are_offline_or_full():
    directories = (
        LogDirInfo("/a", "KAFKA_STORAGE_ERROR", 0, 0, None, None),
        LogDirInfo("/b", None, 1, 10, 1000, 50),
        LogDirInfo("/c", None, 1, 10, 1000, 500),
        LogDirInfo("/d", None, 1, 10, None, None),
    )
    snapshot = ClusterSnapshot("test", brokers={1: broker(1, log_dirs=directories)})
    assert problems(snapshot) == [
        ("disk", "log directory /a of broker 1 is offline: KAFKA_STORAGE_ERROR"),
        ("disk", "log directory /b of broker 1 has 5 % free space left"),
    ]


def node(node_id: int, *, lag: int = 0, lag_ms: int = 0, fetched_ms: int = NOW_MS) -> QuorumNode:
    return QuorumNode(node_id, True, 100, lag, lag_ms, "", (), fetched_ms, NOW_MS - lag_ms)


def test_voters_that_are_missing_or_behind():
    nodes = (
        node(1, fetched_ms=0),
        node(2),
        node(3, fetched_ms=NOW_MS - 60_000),
        node(4, lag=7, lag_ms=20_000),
    )
    snapshot = ClusterSnapshot("test", quorum=QuorumInfo(1, 5, 100, nodes, None))
    assert problems(snapshot) == [
        ("quorum", "voter 3 does not fetch the metadata log"),
        ("quorum", "voter 4 is 20 s behind the metadata log"),
    ]


def test_next_step_for_a_missing_voter_with_a_new_directory():
    observer = node(3)._replace(is_voter=False, endpoints=("CONTROLLER://[fd00::3]:9093",))
    voter = observer._replace(is_voter=True, fetched_ms=0)
    snapshot = ClusterSnapshot(
        "test", quorum=QuorumInfo(1, 5, 100, (node(1), voter, observer), None)
    )
    (problem,) = problems_of(snapshot, ClusterState(), NOW_MS)
    assert problem.next_step.startswith("if the former directory still exists, restart controller")
    assert "`wirebroker quorum add-voter 3@[fd00::3]:9093 --yes`" in problem.next_step


def test_a_quorum_that_does_not_respond():
    snapshot = ClusterSnapshot("test", quorum=QuorumInfo(-1, -1, -1, (), "timed out"))
    assert problems(snapshot) == [("quorum", "the controllers do not respond: timed out")]


def test_what_cannot_be_checked_comes_last():
    snapshot, state = cluster(PartitionLayout(1, 0, (1, 2), (1,), ()))
    state.refusals["groups"] = "this user may not do that with the cluster"
    found = problems_of(snapshot, state, NOW_MS)
    assert [problem.level for problem in found] == [ProblemLevel.WARNING, ProblemLevel.UNKNOWN]
    assert found[1].what == "groups cannot be read: this user may not do that with the cluster"


def test_rates_of_a_new_topic_begin_with_its_first_sample():
    samples = (
        SlotNumbers(0, array("q", [1])),
        SlotNumbers(1000, array("q", [1, 10])),
        SlotNumbers(3000, array("q", [1, 30])),
    )
    window = Window(samples, samples[0])
    assert window.rate(1, 1) == 10.0
    assert window.rate(0, 1) == 0.0
    assert window.rate(2, 1) is None
