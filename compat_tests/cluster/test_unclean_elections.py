"""Groups when the only in-sync replica of their partition dies.

A replica outside the ISR takes over only by an unclean election, and has not got the group. Kafka's
ConsumerBounceTest allows such elections, and loses groups by them on a busy machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.cluster.moving.test_moving_groups import coordinator_of
from compat_tests.cluster.replicated_load import WAIT_S, isrs
from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long]

GROUP = "g"
SETTINGS = {
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
    "unclean.leader.election.interval.ms": "500",
}
AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def ask(cluster: Cluster, node_id: int, key: ApiKey, version: int, body: dict[str, Any]) -> Any:
    client = BlockingClient((HOST, cluster.brokers[node_id].port))
    try:
        return client.ask(key, version, body)
    finally:
        client.close()


def beat(cluster: Cluster, node_id: int, epoch: int) -> Any:
    """Send a member's heartbeat until the coordinator has loaded its partition."""
    body = {
        "group_id": GROUP,
        "member_id": "m" * 22,
        "member_epoch": epoch,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    answers: list[Any] = []

    def is_served() -> bool:
        answers.append(ask(cluster, node_id, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body))
        return answers[-1].error_code not in AGAIN

    eventually(is_served, timeout_s=WAIT_S)
    return answers[-1]


def wait_for_isr(cluster: Cluster, node_ids: set[int]) -> None:
    eventually(
        lambda: (
            set(map(frozenset, isrs(cluster, [CONSUMER_OFFSETS]).values())) == {frozenset(node_ids)}
        ),
        timeout_s=WAIT_S,
    )


@pytest.mark.parametrize("is_unclean", [False, True], ids=["clean", "unclean"])
def test_group_is_lost_by_an_unclean_election_alone(
    start_cluster: StartCluster, broker_kind: str, is_unclean: bool
) -> None:
    allowed = {"unclean.leader.election.enable": str(is_unclean).lower()}
    cluster = start_cluster(settings=SETTINGS | allowed)
    start = cluster.java_broker if broker_kind == "apache" else cluster.wirebroker
    start(1)
    start(2)
    find = {"coordinator_keys": [GROUP], "key_type": 0}
    eventually(
        lambda: (
            ask(cluster, 1, ApiKey.FIND_COORDINATOR, 4, find).coordinators[0].error_code
            == ErrorCode.NONE
        ),
        timeout_s=WAIT_S,
    )
    wait_for_isr(cluster, {1, 2})
    leader = coordinator_of(cluster)
    (other,) = {1, 2} - {leader}
    cluster.brokers[other].kill9()
    wait_for_isr(cluster, {leader})
    joined = beat(cluster, leader, 0)
    assert ErrorCode(joined.error_code) is ErrorCode.NONE
    cluster.brokers[leader].kill9()
    survivor = other if is_unclean else leader
    cluster.brokers[survivor].start()
    eventually(lambda: coordinator_of(cluster) == survivor, timeout_s=WAIT_S)
    found = ErrorCode(beat(cluster, survivor, joined.member_epoch).error_code)
    assert found is (ErrorCode.GROUP_ID_NOT_FOUND if is_unclean else ErrorCode.NONE)
