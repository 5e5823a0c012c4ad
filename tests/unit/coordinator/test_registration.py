"""A node joins its own cluster, and a cluster begins."""

import pytest

from tests.unit.coordinator.kit import DIRECTORY, broker, image_of, partition_of, run, topic
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.cluster_image import NO_LEADER, ClusterImage, Endpoint
from wirebroker.coordinator.feature_control import activation_records, check_features, feature_level
from wirebroker.coordinator.registration import register, unfence


def test_the_broker_epoch_is_the_offset_of_the_registration():
    image = image_of(feature_level("metadata.version", 30))
    epoch, after, records = run(
        register(
            image,
            node_id=1,
            incarnation_id=bytes([3]) * 16,
            endpoints=[Endpoint("PLAINTEXT", "localhost", 9092, 0)],
            log_directories=[DIRECTORY],
            rack="r1",
        ),
        image,
    )
    kinds = [each.type for each in records]
    assert kinds == [RecordType.REGISTER_CONTROLLER, RecordType.REGISTER_BROKER]
    assert epoch == image.offset + kinds.index(RecordType.REGISTER_BROKER)
    node = after.brokers[1]
    assert (node.epoch, node.fenced, node.rack) == (epoch, True, "r1")
    assert node.endpoints["PLAINTEXT"].port == 9092
    assert 1 in after.controllers


def test_a_broker_that_is_unfenced_serves():
    image = image_of(broker(fenced=True))
    _, after, _ = run(unfence(image, node_id=1), image)
    assert after.brokers[1].is_active


@pytest.mark.parametrize(
    ("fields", "leader", "isr"),
    [
        ({"isr": [1]}, 1, (1,)),
        ({"isr": [], "eligible_leader_replicas": [1]}, 1, (1,)),
        ({"isr": [], "last_known_elr": [1]}, 1, (1,)),
        ({"isr": [2], "eligible_leader_replicas": [1]}, NO_LEADER, (2,)),
        ({"isr": []}, NO_LEADER, ()),
    ],
)
def test_partitions_without_a_leader_are_led_by_the_broker_if_it_may(fields, leader, isr):
    image = image_of(
        broker(fenced=True),
        *topic("a", 1, replicas=[1, 2], directories=[DIRECTORY] * 2, leader=NO_LEADER, **fields),
    )
    _, after, _ = run(unfence(image, node_id=1), image)
    partition = partition_of(after, "a")
    assert (partition.leader, partition.isr) == (leader, isr)
    assert partition.leader_epoch == (0 if leader == NO_LEADER else 1)
    if leader != NO_LEADER:
        assert partition.eligible_leader_replicas == ()
        assert partition.last_known_elr == ()


def test_partitions_that_have_a_leader_are_left_alone():
    image = image_of(broker(fenced=True), *topic("a", 1))
    _, after, _ = run(unfence(image, node_id=1), image)
    assert partition_of(after, "a").leader_epoch == 0


def test_an_empty_log_begins_with_the_feature_levels_in_a_transaction():
    records = activation_records(ClusterImage())
    assert [each.type.name for each in records] == [
        "BEGIN_TRANSACTION",
        "FEATURE_LEVEL",
        "FEATURE_LEVEL",
        "END_TRANSACTION",
    ]
    image = image_of(*records)
    assert image.features == {"metadata.version": 30, "transaction.version": 2}
    assert activation_records(image) == []


def test_a_start_that_was_interrupted_begins_again():
    records = activation_records(ClusterImage())
    image = image_of(*records[:2])
    again = activation_records(image)
    assert again[0].type is RecordType.ABORT_TRANSACTION
    features = {"metadata.version": 30, "transaction.version": 2}
    assert image_of(*again, base=image).features == features


@pytest.mark.parametrize(
    ("name", "level"), [("metadata.version", 31), ("group.version", 2), ("new.version", 1)]
)
def test_features_beyond_kafka_4_3_are_refused(name, level):
    with pytest.raises(KafkaError) as raised:
        check_features(image_of(feature_level(name, level)).features)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_features_of_kafka_4_3_are_read():
    image = image_of(
        feature_level("metadata.version", 30),
        feature_level("group.version", 1),
        feature_level("transaction.version", 2),
        metadata_record(RecordType.NO_OP),
    )
    check_features(image.features)


def test_a_formatted_directory_says_which_levels_a_cluster_begins_with():
    levels = [
        feature_level("metadata.version", 29),
        feature_level("eligible.leader.replicas.version", 1),
    ]
    records = activation_records(ClusterImage(), bootstrap=levels, min_insync_replicas=2)
    image = image_of(*records)
    assert image.features == {"metadata.version": 29, "eligible.leader.replicas.version": 1}
    # As Apache Kafka does: in-sync replicas are counted by the cluster's setting from then on.
    assert image.configs[4, ""] == {"min.insync.replicas": "2"}


def test_other_records_of_a_bootstrap_are_taken_too():
    levels = [feature_level("group.version", 1)]
    image = image_of(*activation_records(ClusterImage(), bootstrap=levels))
    assert image.features == {"metadata.version": 30, "group.version": 1}
    assert (4, "") not in image.configs
