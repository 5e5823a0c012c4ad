"""`wirebroker reassign` and `elect` on a cluster of three wirebrokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.cluster.own_controller import own_cluster
from tests.support.cli.verbs import Verbs
from tests.support.tools.waiting import eventually
from wirebroker.client.configs.configs import BROKER, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.cluster.nodes import Cluster

NODES = [2, 3, 101]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    new_cluster = own_cluster(tmp_path_factory.mktemp("cluster"), has_broker=True)
    new_cluster.wirebroker(2)
    new_cluster.wirebroker(3)
    yield new_cluster
    new_cluster.stop()


@pytest.fixture
def verbs(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(cluster.bootstrap, capsys)


def partitions(verbs: Verbs, topic: str) -> list[dict[str, Any]]:
    (described,) = verbs.json("topic", "describe", topic)
    rows: list[dict[str, Any]] = described["partitions"]
    return rows


def throttled(verbs: Verbs, kind: int, name: str) -> dict[str, str]:
    word = {TOPIC: "topic", BROKER: "broker"}[kind]
    rows = verbs.json("config", "list", word, name)
    return {row["name"]: row["value"] for row in rows if "throttled" in row["name"]}


def test_replicas_are_reassigned_and_moved_back(verbs: Verbs, cluster: Cluster) -> None:
    verbs.do("topic", "create", "moving", "-p", "3", "-r", "1")
    verbs.feed(b"a\nb\nc\n", "produce", "moving")
    planned = verbs.run("reassign", "plan", "moving", "--brokers", "2,3", "-r", "2")
    assert planned.status == 0, planned
    file = cluster.folder / "plan.json"
    file.write_text(planned.out)
    old_plan = cluster.folder / "back.json"
    old_plan.write_text(planned.err.splitlines()[0].removeprefix("current assignment: "))
    assert verbs.run("reassign", "verify", str(file)).status == 1
    preview = verbs.do("reassign", "execute", str(file))
    assert "would be moved" in preview.err
    verbs.do("reassign", "execute", str(file), "--throttle", "10000000", "--yes")
    assert throttled(verbs, TOPIC, "moving").keys() == {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }
    assert set(throttled(verbs, BROKER, "2").values()) == {"10000000"}
    eventually(lambda: verbs.run("reassign", "verify", str(file)).status == 0)
    assert verbs.json("reassign", "list") == []
    assert throttled(verbs, TOPIC, "moving") == throttled(verbs, BROKER, "2") == {}
    assert {tuple(sorted(partition["replicas"])) for partition in partitions(verbs, "moving")} == {
        (2, 3)
    }
    verbs.do("reassign", "execute", str(old_plan), "--yes")
    eventually(lambda: verbs.run("reassign", "verify", str(old_plan)).status == 0)
    assert {len(partition["replicas"]) for partition in partitions(verbs, "moving")} == {1}
    assert len(verbs.do("consume", "moving", "-o", "start", "-e").lines) == 3
    unknown = verbs.run("reassign", "plan", "moving", "--brokers", "2,9")
    assert "there is no broker 9; running brokers: 2, 3, 101" in unknown.err


def test_incomplete_reassignment_is_canceled(verbs: Verbs, cluster: Cluster) -> None:
    verbs.do("topic", "create", "stuck", "-p", "1", "-r", "1")
    (before,) = partitions(verbs, "stuck")
    old_replicas = before["replicas"]
    file = cluster.folder / "stuck.json"
    target_id = next(broker_id for broker_id in (2, 3) if [broker_id] != old_replicas)
    cluster.brokers[target_id].kill9()
    plan = '{"version":1,"partitions":[{"topic":"stuck","partition":0,"replicas":[%d]}]}'
    file.write_text(plan % target_id)
    verbs.do("reassign", "execute", str(file), "--yes")
    (moving,) = verbs.json("reassign", "list")
    assert (moving["adding"], moving["removing"]) == ([target_id], old_replicas)
    assert "would be canceled" in verbs.do("reassign", "cancel").err
    assert verbs.json("reassign", "cancel", "--yes")["done"]
    assert verbs.json("reassign", "list") == []
    assert partitions(verbs, "stuck")[0]["replicas"] == old_replicas
    cluster.brokers[target_id].start()


def test_preferred_leader_election_restores_leader(verbs: Verbs, cluster: Cluster) -> None:
    verbs.do("topic", "create", "led", "-p", "3", "-r", "3")
    verbs.feed(b"kept\n", "produce", "led", "-p", "0")
    assert "ok  partitions" in verbs.run("doctor").lines
    cluster.brokers[2].stop()
    eventually(lambda: 2 not in {partition["leader"] for partition in partitions(verbs, "led")})
    result = verbs.run("doctor")
    assert result.status == 1
    assert "partitions are under-replicated" in result.out
    assert "1 brokers hold replicas and are not running: 2" in result.out
    cluster.brokers[2].start()
    eventually(lambda: all(len(partition["isr"]) == 3 for partition in partitions(verbs, "led")))
    verbs.do("elect", "preferred", "led")
    eventually(
        lambda: all(
            partition["leader"] == partition["replicas"][0]
            for partition in partitions(verbs, "led")
        )
    )
    assert verbs.do("consume", "led", "-o", "start", "-e").lines == ["kept"]


def test_invalid_plan_is_argument_error(verbs: Verbs, cluster: Cluster) -> None:
    file = cluster.folder / "none.json"
    for text in ("", "[]", "{}", '{"version":2}', '{"partitions":[{"topic":"t"}]}'):
        file.write_text(text)
        result = verbs.run("reassign", "execute", str(file), "--yes")
        assert result.status == 2, result
        assert "is not a plan" in result.err
