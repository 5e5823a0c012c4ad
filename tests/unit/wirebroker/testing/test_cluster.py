"""The kit's cluster: nodes in separate processes that are killed, paused and partitioned."""

from __future__ import annotations

import inspect

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.harness.examples import check_example, examples_of
from tests.support.http.kit_http import process_of
from tests.support.tools.waiting import eventually
from wirebroker.client.topics.topics import delete_topics
from wirebroker.testing import Cluster, ClusterNode, KafkaError

EXAMPLES = examples_of((Cluster, ClusterNode), "Cluster")


@pytest.fixture(scope="module")
def shared():
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def small():
    with Cluster(nodes=1) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    yield shared
    shared.heal_network()
    for node in shared.nodes:
        node.faults.clear() if node.is_running and not node.is_paused else node.resume()
    shared.start()
    shared.clock.reset()
    names = list(shared.topics())
    shared._life.ask(lambda client: delete_topics(client, names))


def values(cluster, topic="orders"):
    return [record.value for record in cluster.records(topic)]


def producer_of(target, **settings):
    config = {"bootstrap.servers": target.bootstrap_servers, "acks": "all"}
    return confluent_kafka.Producer(config | settings)


def test_acknowledged_records_survive_the_leader(cluster):
    cluster.create_topic("orders")
    producer = producer_of(cluster)
    producer.produce("orders", b"one")
    assert producer.flush(20) == 0
    leader = cluster.leader("orders")
    leader.kill()
    assert not leader.is_running

    other = cluster.wait_for_leader("orders", other_than=leader)
    assert other.id != leader.id
    cluster.wait_for_in_sync("orders", count=2)
    producer.produce("orders", b"two")
    assert producer.flush(20) == 0
    cluster.assert_produced("orders", "one", "two")
    leader.start()
    cluster.wait_for_in_sync("orders", count=3)
    assert cluster.in_sync("orders") == cluster.nodes


def test_isolated_leader_acknowledges_nothing_and_is_replaced(cluster):
    cluster.create_topic("orders")
    cluster.move_leader("orders", to=2)
    lonely = cluster.leader("orders")
    assert lonely is cluster.nodes[2]
    producer = producer_of(lonely, **{"message.timeout.ms": 20_000})
    with cluster.partition_network(lonely):
        lost = []
        producer.produce("orders", b"one", on_delivery=lambda error, _: lost.append(error))
        assert producer.flush(0.5) == 1, "two of three have to have it"
        with pytest.raises(RuntimeError, match="node 2 is cut off and could not start: heal"):
            cluster.snapshot()
        other = cluster.wait_for_leader("orders", other_than=lonely)
        cluster.wait_for_in_sync("orders", count=2)
        cluster.produce("orders", "two", partition=0)
        assert values(cluster) == [b"two"]
        assert other in cluster.in_sync("orders")
    # The producer learns the new leader once its own broker knows it, and then sends there.
    cluster.wait_for_in_sync("orders", count=3)
    assert producer.flush(20) == 0
    assert lost == [None]
    cluster.assert_produced("orders", "two", "one")


def test_hanging_leader_is_replaced_and_rejoins(cluster):
    cluster.create_topic("orders")
    cluster.move_leader("orders", to=1)
    cluster.nodes[1].pause()
    assert cluster.nodes[1].is_paused
    with pytest.raises(RuntimeError, match="node 1 is paused: resume it first"):
        cluster.clock.advance(hours=1)
    with pytest.raises(RuntimeError, match="the broker is paused: resume it"):
        cluster.nodes[1].clock.advance(hours=1)
    with pytest.raises(RuntimeError, match="is paused"):
        cluster.nodes[1].requests()
    assert cluster.wait_for_leader("orders", other_than=cluster.nodes[1]).id != 1
    cluster.produce("orders", "one", partition=0)
    cluster.nodes[1].resume()
    cluster.wait_for_in_sync("orders", count=3)
    assert values(cluster) == [b"one"]


def test_a_node_without_a_replica_gets_one_and_leads(cluster):
    admin = AdminClient(cluster.client_config("confluent"))
    topic = NewTopic("orders", 1, 1, config={"min.insync.replicas": "1"})
    admin.create_topics([topic])["orders"].result(20)
    cluster.wait_for_leader("orders")
    cluster.produce("orders", "one", partition=0)
    (alone,) = cluster.in_sync("orders")
    other = cluster.nodes[(alone.id + 1) % 3]
    cluster.move_leader("orders", 0, to=other)
    cluster.wait_for_in_sync("orders", count=1)
    assert cluster.in_sync("orders") == [other]
    assert values(cluster) == [b"one"]


def test_faults_and_requests_cover_one_node_and_clients_only(cluster):
    cluster.create_topic("orders")
    leader = cluster.leader("orders")
    fault = leader.faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER").times(1)
    leader.faults.error("FETCH", "UNKNOWN_SERVER_ERROR")
    producer = producer_of(cluster, **{"client.id": "shop"})
    producer.produce("orders", b"one")
    assert producer.flush(20) == 0, "followers are not disturbed"
    assert fault.acted == 1
    assert len(leader.requests(api="PRODUCE", client_id="shop")) == 2
    others = [node for node in cluster.nodes if node is not leader]
    assert [node.requests(api="PRODUCE", client_id="shop") for node in others] == [[], []]
    assert not leader.requests(api="FETCH", client_id=f"broker-{others[0].id}")


def test_invalid_use_of_a_cluster_is_reported(cluster):
    with pytest.raises(ValueError, match="a cluster has 1 to 9 nodes, not 0"):
        Cluster(nodes=0)
    with pytest.raises(RuntimeError, match="the cluster is not running"):
        _ = Cluster().bootstrap_servers
    with pytest.raises(RuntimeError, match="the cluster is not running"):
        Cluster().topics()
    with pytest.raises(RuntimeError, match="the cluster is not running"):
        Cluster().snapshot()
    with pytest.raises(RuntimeError, match="no node of the cluster is running: start"):
        Cluster().clock.advance(hours=1)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.leader("orders")
    cluster.create_topic("orders")
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: there is no orders-3"):
        cluster.leader("orders", 3)
    with pytest.raises(KafkaError, match="INVALID_REPLICA_ASSIGNMENT"):
        cluster.move_leader("orders", to=7)
    with pytest.raises(TimeoutError, match=r"orders-0 is not in the expected state after 0\.2 s"):
        cluster.wait_for_in_sync("orders", count=4, timeout=0.2)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_works(example, cluster, small, capsys):
    check_example(example, {"cluster": cluster, "small": small, "Cluster": Cluster}, capsys)


def test_every_public_name_has_an_example():
    public = {
        name
        for part in (Cluster, ClusterNode)
        for name, member in vars(part).items()
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
    }
    assert public - {example.name.removeprefix("Cluster.") for example in EXAMPLES} == set()


def test_moving_the_clock_affects_all_nodes_also_later_ones(cluster):
    aged = {"retention.ms": 3_600_000, "message.timestamp.type": "LogAppendTime"}
    cluster.create_topic("orders", partitions=3, config=aged)
    for partition in range(3):
        cluster.produce("orders", "old", partition=partition)
    cluster.nodes[0].stop()
    cluster.clock.advance(hours=2)

    def is_gone():
        # A new leader learns the high watermark only later, and only committed records expire. So
        # the clock advances until they do.
        cluster.clock.advance(seconds=1)
        return values(cluster) == []

    eventually(is_gone)
    cluster.nodes[0].start()
    ahead_ms = cluster.nodes[0].clock.now_ms() - cluster.nodes[1].clock.now_ms()
    assert abs(ahead_ms) < 60_000
    for partition in range(3):
        cluster.wait_for_in_sync("orders", partition, count=3)
    cluster.produce("orders", "new", partition=0)
    assert values(cluster) == [b"new"]


def test_cluster_fault_applies_on_any_leader(cluster):
    cluster.create_topic("orders", partitions=3)
    leaders = {cluster.leader("orders", partition) for partition in range(3)}
    fault = cluster.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS", topic="orders").times(1)
    producer = producer_of(cluster, **{"retry.backoff.ms": 10})
    for partition in range(3):
        producer.produce("orders", b"one", partition=partition)
    assert producer.flush(20) == 0
    assert fault.acted == len(leaders)
    with cluster.faults.blackhole("LIST_GROUPS"):
        assert all(len(node._life.instruct("faults", {})) == 2 for node in cluster.nodes)
    fault.remove()
    assert fault.acted == 0


def test_fault_of_an_earlier_process_does_not_affect_a_later_fault(small):
    (node,) = small.nodes
    earlier = small.faults.disconnect("LIST_GROUPS")
    (row,) = node._life.instruct("faults", {})
    node.stop()
    node.start()
    later = node.faults.error("PRODUCE", "NOT_ENOUGH_REPLICAS").times(1)
    assert later._number == row["id"], "a new process counts from 1"
    producer = producer_of(small, **{"retry.backoff.ms": 10})
    producer.produce("restarted", b"one")
    assert producer.flush(20) == 0
    assert (earlier.acted, later.acted) == (0, 1)
    with pytest.raises(ValueError, match=f"there is no fault {earlier._number}"):
        earlier.times(1)
    earlier.remove()
    assert later.acted == 1
    small.faults.clear()
    assert later.acted == 0


def test_restored_cluster_has_the_data_of_the_snapshot(cluster, tmp_path):
    cluster.create_topic("orders", partitions=3)
    for partition in range(3):
        cluster.produce("orders", f"kept {partition}", partition=partition)
    before = cluster.bootstrap_servers
    cluster.nodes[0].kill()  # not detected yet
    snapshot = cluster.snapshot(tmp_path / "kept")
    assert [node.is_running for node in cluster.nodes] == [False, True, True]
    cluster.produce("orders", "lost")
    cluster.create_topic("later")
    cluster.nodes[2].pause()
    process = process_of(cluster.nodes[1])
    fault = cluster.nodes[1].faults.error("PRODUCE", "NOT_LEADER_OR_FOLLOWER")
    cluster.restore(snapshot)
    assert process_of(cluster.nodes[1]) == process
    assert fault.acted == 0
    assert cluster.nodes[1]._life.instruct("faults", {}) == []
    assert not cluster.nodes[2].is_paused
    assert sorted(values(cluster)) == [b"kept 0", b"kept 1", b"kept 2"]
    assert "later" not in cluster.topics()
    assert cluster.bootstrap_servers == before
    producer = producer_of(cluster)
    producer.produce("orders", b"new", partition=1)
    assert producer.flush(20) == 0
    cluster.wait_for_in_sync("orders", 1, count=2)
    with pytest.raises(ValueError, match="is not empty"):
        cluster.snapshot(tmp_path / "kept")
    with pytest.raises(ValueError, match="is not a snapshot of a cluster of 3 nodes"):
        cluster.restore(cluster.nodes[0].directory)


def test_failed_restore_stops_nodes_and_a_valid_one_restarts_them(small, tmp_path):
    small.create_topic("kept")
    good = small.snapshot(tmp_path / "good")
    bad = small.snapshot(tmp_path / "bad")
    identity = bad.directory / "node-0" / "meta.properties"
    identity.write_text(identity.read_text().replace("node.id=0", "node.id=7"))
    with pytest.raises(ValueError, match="does not start"):
        small.restore(bad)
    assert not small.nodes[0].is_running
    small.restore(good)
    small.start()
    assert "kept" in small.topics()
    small.nodes[0]._life.instruct("crash", {})  # as another language may send it
    small.restore(good)
    assert "kept" in small.topics()


def test_closed_cluster_does_not_start_again():
    cluster = Cluster(nodes=1)
    cluster.close()
    with pytest.raises(RuntimeError, match="was closed"):
        cluster.start()
