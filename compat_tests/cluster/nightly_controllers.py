"""Apache Kafka's active controller is killed or frozen under load.

The active one of three is killed, which must fence no broker; a single one is frozen for longer
than a session, and killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.replicated_load import QUICK, WAIT_S, Load, all_in_sync, check, create
from compat_tests.support.raw_requests import Requests
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long]

TOPICS = {"led-by-1": [1, 2, 3], "led-by-2": [2, 3, 1], "led-by-3": [3, 1, 2]}
KILLS = 6
# Records that take longer than a session.
MANY = 4_000


def ask(cluster: Cluster, key: ApiKey, body: dict[str, object]) -> object:
    requests = Requests((HOST, cluster.brokers[1].port))
    try:
        return requests.try_ask(key, 0, body)
    finally:
        requests.close()


def active(cluster: Cluster) -> int:
    """Return the quorum's leader; -1 while it is unknown."""
    log = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    answer = ask(cluster, ApiKey.DESCRIBE_QUORUM, {"topics": [log]})
    topics = answer.topics  # type: ignore[attr-defined]
    return int(topics[0].partitions[0].leader_id) if topics else -1


def leader_epochs(cluster: Cluster) -> dict[str, tuple[int, int]]:
    """Return leader and epoch of partition 0 of each topic: fencing would change both."""
    requests = Requests((HOST, cluster.brokers[1].port))
    answer = requests.ask(ApiKey.METADATA, 12, {"topics": None})
    requests.close()
    return {
        topic.name: (topic.partitions[0].leader_id, topic.partitions[0].leader_epoch)
        for topic in answer.topics
        if topic.name in TOPICS
    }


@pytest.mark.timeout(900)
def test_active_controller_is_killed_under_load(start_cluster: StartCluster) -> None:
    cluster = start_cluster(controllers=3, settings=QUICK)
    for node_id in (1, 2, 3):
        cluster.wirebroker(node_id)
    create(cluster, TOPICS)
    all_in_sync(cluster, list(TOPICS))
    before = leader_epochs(cluster)
    assert {name: leader for name, (leader, _) in before.items()} == {
        name: replicas[0] for name, replicas in TOPICS.items()
    }
    killed: list[int] = []
    with Load(cluster, list(TOPICS)) as load:
        for _ in range(KILLS):
            load.go_on()
            killed.append(active(cluster))
            controller = cluster.controllers[killed[-1]]
            controller.kill9()
            load.go_on()
            eventually(lambda: active(cluster) not in {-1, killed[-1]}, timeout_s=WAIT_S)
            load.go_on()
            controller.start()
    print(f"\n{load.count} records acknowledged, {len(killed)} kills of {set(killed)}")  # noqa: T201
    assert leader_epochs(cluster) == before
    for broker in cluster.brokers.values():
        assert "was fenced" not in broker.log.read_text()
        assert "unregistered" not in broker.log.read_text()
    check(cluster, load)


@pytest.mark.timeout(600)
def test_only_controller_is_frozen_and_killed_under_load(start_cluster: StartCluster) -> None:
    cluster = start_cluster(settings=QUICK)
    cluster.java_broker(1)
    for node_id in (2, 3):
        cluster.wirebroker(node_id)
    create(cluster, TOPICS)
    all_in_sync(cluster, list(TOPICS))
    (controller,) = cluster.controllers.values()
    with Load(cluster, list(TOPICS)) as load:
        load.go_on()
        controller.freeze()
        load.go_on(MANY)
        controller.thaw()
        load.go_on()
        controller.kill9()
        load.go_on(MANY)
        controller.start()
        load.go_on()
    check(cluster, load)
