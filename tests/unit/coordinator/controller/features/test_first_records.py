"""The first records of a cluster: feature levels, in the log's first transaction."""

import pytest

from tests.support.coordinators.feature_levels import new_cluster_features
from tests.support.coordinators.kit import image_of
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.config.rows.releases import RELEASES
from wirebroker.coordinator.controller.features.feature_control import (
    activation_records,
    check_features,
    feature_level,
)
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

NEW_CLUSTER = new_cluster_features()


def test_an_empty_log_begins_with_the_feature_levels_in_a_transaction():
    records = activation_records(ClusterImage())
    assert [record.type.name for record in records] == [
        "BEGIN_TRANSACTION",
        *["FEATURE_LEVEL"] * len(NEW_CLUSTER),
        "CONFIG",
        "END_TRANSACTION",
    ]
    image = image_of(*records)
    assert image.features == NEW_CLUSTER
    assert image.configs == {(4, ""): {"min.insync.replicas": "1"}}
    assert activation_records(image) == []


@pytest.mark.parametrize(("release", "level"), RELEASES.items())
def test_a_cluster_of_an_earlier_release_begins_with_its_features(release, level):
    image = image_of(*activation_records(ClusterImage(), metadata_level=RELEASES[release]))
    assert image.features == new_cluster_features(level)
    assert activation_records(image) == []


def test_interrupted_bootstrap_starts_over():
    records = activation_records(ClusterImage())
    image = image_of(*records[:2])
    again = activation_records(image)
    assert again[0].type is RecordType.ABORT_TRANSACTION
    assert image_of(*again, base=image).features == NEW_CLUSTER


@pytest.mark.parametrize(
    ("name", "level"),
    [("metadata.version", 34), ("group.version", 2), ("share.version", 3), ("new.version", 1)],
)
def test_features_beyond_kafka_4_4_are_refused(name, level):
    with pytest.raises(KafkaError) as raised:
        check_features(image_of(feature_level(name, level)).features)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_features_of_kafka_4_4_are_read():
    image = image_of(
        feature_level("metadata.version", 33),
        feature_level("group.version", 1),
        feature_level("share.version", 2),
        feature_level("streams.version", 1),
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
    # As in Apache Kafka: from then on the cluster's setting applies.
    assert image.configs[4, ""] == {"min.insync.replicas": "2"}


def test_other_bootstrap_records_are_applied_too():
    levels = [feature_level("group.version", 1)]
    image = image_of(*activation_records(ClusterImage(), bootstrap=levels))
    assert image.features == {"metadata.version": 33, "group.version": 1}
    assert (4, "") not in image.configs
