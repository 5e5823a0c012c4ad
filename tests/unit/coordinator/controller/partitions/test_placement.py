"""Placement of new partitions: leaders over all active brokers, replicas over racks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.coordinators.kit import broker, image_of
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.partitions.placement import Placer


def cluster(racks, *, fenced=(), offset=0):
    brokers = [broker(number, rack=rack, fenced=number in fenced) for number, rack in racks.items()]
    return replace(image_of(*brokers), offset=offset)


def placed(image, count, *, replication_factor):
    placer = Placer(image, replication_factor=replication_factor)
    return [placer.place(index) for index in range(count)]


def test_each_rack_has_a_replica_and_brokers_lead_equally_often():
    image = cluster({1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"})
    partitions = placed(image, 12, replication_factor=3)
    for partition in partitions:
        assert {image.brokers[broker_id].rack for broker_id in partition.replicas} == {
            "a",
            "b",
            "c",
        }
    assert Counter(partition.leader for partition in partitions) == dict.fromkeys(range(1, 7), 2)


def test_rack_gets_second_replica_only_after_all_have_one():
    image = cluster({1: "a", 2: "a", 3: "a", 4: "b"})
    for partition in placed(image, 8, replication_factor=3):
        assert len(set(partition.replicas)) == 3
        assert 4 in partition.replicas[:2]


def test_brokers_of_a_rack_get_different_followers():
    image = cluster({1: "a", 2: "a", 3: "b", 4: "b"})
    pairs = {partition.replicas for partition in placed(image, 8, replication_factor=2)}
    assert len(pairs) > 2


def test_brokers_without_racks_are_striped():
    partitions = placed(cluster(dict.fromkeys((1, 2, 3)), offset=7), 3, replication_factor=2)
    assert [partition.replicas for partition in partitions] == [(2, 3), (3, 1), (1, 2)]


def test_a_fenced_broker_leads_nothing_and_comes_last_in_its_rack():
    image = cluster({1: "a", 2: "b", 3: "b", 4: "c"}, fenced={3, 4})
    for partition in placed(image, 6, replication_factor=3):
        assert partition.leader in {1, 2}
        assert set(partition.replicas) == {1, 2, 4}
        assert set(partition.isr) == {1, 2}


def without(image, node_id, **fields):
    brokers = {**image.brokers, node_id: image.brokers[node_id]._replace(**fields)}
    return replace(image, brokers=brokers)


def test_stopping_or_fully_cordoned_brokers_get_no_replicas():
    image = cluster({1: "a", 2: "b", 3: "c"})
    directories = image.brokers[2].log_directories
    assert directories
    for excluded in (
        without(image, 2, in_controlled_shutdown=True),
        without(image, 2, cordoned_log_directories=directories),
    ):
        for partition in placed(excluded, 4, replication_factor=2):
            assert set(partition.replicas) == {1, 3}
        with pytest.raises(KafkaError, match="only 2 broker"):
            Placer(excluded, replication_factor=3)
    for still in (
        without(
            image,
            2,
            log_directories=(*directories, b"x" * 16),
            cordoned_log_directories=directories,
        ),
        without(image, 2, cordoned_log_directories=()),
    ):
        assert {
            replica
            for partition in placed(still, 4, replication_factor=2)
            for replica in partition.replicas
        } == {1, 2, 3}
    alone = without(cluster({1: "a"}), 1, cordoned_log_directories=directories)
    with pytest.raises(KafkaError, match="cordoned"):
        Placer(without(alone, 1, log_directories=directories), replication_factor=1)


def test_a_broker_that_has_stopped_cleanly_takes_replicas():
    image = cluster({1: "a", 2: "b", 3: "c"})
    stopped = without(image, 2, fenced=True, in_controlled_shutdown=True)
    for partition in placed(stopped, 4, replication_factor=3):
        assert set(partition.replicas) == {1, 2, 3}
        assert set(partition.isr) == {1, 3}
        assert partition.leader != 2


def test_too_few_brokers_are_refused():
    with pytest.raises(KafkaError, match="only 2 broker"):
        Placer(cluster({1: "a", 2: "b"}), replication_factor=3)
    with pytest.raises(KafkaError, match="fenced"):
        Placer(cluster({1: "a"}, fenced={1}), replication_factor=1)


@given(
    st.dictionaries(st.integers(1, 40), st.sampled_from([None, "a", "b", "c"]), min_size=1),
    st.sets(st.integers(1, 40)),
    st.integers(0, 10**6),
    st.data(),
)
def test_replicas_are_distinct_rack_spread_and_led_by_an_active_broker(racks, fenced, offset, data):
    image = cluster(racks, fenced=fenced, offset=offset)
    if not any(broker.is_active for broker in image.brokers.values()):
        return
    factor = data.draw(st.integers(1, len(racks)))
    sizes = Counter(rack or "" for rack in racks.values())
    for partition in placed(image, 5, replication_factor=factor):
        assert len(set(partition.replicas)) == factor
        assert partition.leader == partition.replicas[0]
        assert image.brokers[partition.leader].is_active
        counts = Counter(racks[broker_id] or "" for broker_id in partition.replicas)
        assert len(counts) == min(factor, len(sizes))
        # A rack has fewer replicas than another only if it has no more brokers, or by one.
        assert all(
            counts[rack] in {size, max(counts.values()), max(counts.values()) - 1}
            for rack, size in sizes.items()
        )
