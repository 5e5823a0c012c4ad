"""A cluster's brokers are replaced by wirebrokers and back, one by one, under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.group_reader import Reader
from compat_tests.cluster.nodes import JavaBroker, MemberBroker
from compat_tests.cluster.replicated_load import WAIT_S, Load, create, isrs, read
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster

pytestmark = pytest.mark.java

SETTINGS = {
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "4",
}


def become(cluster: Cluster, node_id: int, kind: type[JavaBroker | MemberBroker]) -> None:
    """Replace a broker by one of the other kind, with the same folder and port."""
    old_broker = cluster.brokers[node_id]
    old_broker.stop()
    new_broker = kind(cluster, node_id)
    new_broker.port = old_broker.port
    cluster.brokers[node_id] = new_broker
    new_broker.start()
    eventually(lambda: isrs(cluster, ["t"])["t"] == {1, 2}, timeout_s=WAIT_S)


# Brokers that change in turn; after the first one, only wirebrokers remain.
THERE_AND_BACK = ((1, MemberBroker), (1, JavaBroker))
BOTH_BROKERS = ((1, MemberBroker), (2, JavaBroker), (2, MemberBroker), (1, JavaBroker))


@pytest.mark.parametrize(
    ("changes", "protocol"),
    [
        pytest.param(THERE_AND_BACK, "consumer", id="one broker"),
        pytest.param(BOTH_BROKERS, "classic", id="both brokers", marks=pytest.mark.nightly),
        pytest.param(
            BOTH_BROKERS, "consumer", id="both brokers-consumer", marks=pytest.mark.nightly
        ),
    ],
)
def test_cluster_under_load_moves_from_apache_kafka_and_back(
    start_cluster: StartCluster,
    changes: Sequence[tuple[int, type[JavaBroker | MemberBroker]]],
    protocol: str,
) -> None:
    cluster = start_cluster(settings=SETTINGS)
    cluster.java_broker(1)
    cluster.wirebroker(2)
    create(cluster, {"t": [1, 2]})
    eventually(lambda: isrs(cluster, ["t"])["t"] == {1, 2}, timeout_s=WAIT_S)
    with Reader(cluster, "t", group_protocol=protocol) as reader:
        with Load(cluster, ["t"]) as load:
            load.go_on()
            for node_id, kind in changes:
                become(cluster, node_id, kind)
                load.go_on()
        assert not load.failed
        acknowledged = load.acknowledged["t"]
        eventually(lambda: acknowledged <= set(reader.values), timeout_s=WAIT_S)
    values = read(cluster, "t")
    assert len(values) == len(set(values))
    assert acknowledged <= set(values)
    # The group may read uncommitted records again, but skips none.
    order = {value: index for index, value in enumerate(values)}
    assert set(reader.values) == set(order)
