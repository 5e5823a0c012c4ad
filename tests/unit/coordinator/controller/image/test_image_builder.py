"""The effect of each kind of record on an image."""

from typing import Any

import pytest

from tests.support.coordinators.kit import (
    DIRECTORY,
    broker,
    image_of,
    one_broker,
    partition_of,
    topic,
    topic_id,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.coordinator.controller.image.cluster_image import (
    MIGRATING_DIRECTORY,
    NO_LEADER,
    UNASSIGNED_DIRECTORY,
    ClusterImage,
    ResourceType,
    config_record,
    to_records,
)
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder

KIND = RecordType


def change(index=0, number=1, **fields):
    return metadata_record(
        KIND.PARTITION_CHANGE, partition_id=index, topic_id=topic_id(number), **fields
    )


def build(image, *records):
    builder = ImageBuilder(image).apply_all(records)
    return builder.build(offset=image.offset + len(records), epoch=1)


def test_a_topic_has_its_partitions_and_is_found_by_name_and_id():
    image = one_broker(*topic("a", 1, partitions=2))
    by_name = image.topics["a"]
    assert by_name is image.topics_by_id[topic_id(1)]
    assert list(by_name.partitions) == [0, 1]
    assert partition_of(image, "a", 1).leader == 1
    assert image.partition("a", 2) is None
    assert image.partition("b", 0) is None


def test_building_leaves_the_image_before_as_it_was():
    before = one_broker(*topic("a", 1), config_record(ResourceType.TOPIC, "a", "x", "1"))
    copy = image_of(*to_records(before)).topics
    build(
        before,
        *topic("b", 2),
        change(leader=NO_LEADER),
        config_record(ResourceType.TOPIC, "a", "x", "2"),
        metadata_record(KIND.REMOVE_TOPIC, topic_id=topic_id(1)),
    )
    assert before.topics == copy
    assert before.topic_config("a") == {"x": "1"}


def test_what_did_not_change_is_shared_between_images():
    before = one_broker(*topic("a", 1))
    after, _ = build(before, config_record(ResourceType.TOPIC, "a", "x", "1"))
    assert after.topics is before.topics
    assert after.brokers is before.brokers


def test_a_named_leader_raises_the_leader_epoch_even_if_it_stays():
    image = image_of(change(leader=1), base=one_broker(*topic("a", 1)))
    partition = partition_of(image, "a")
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 1, 1)


def test_a_change_of_the_isr_alone_keeps_the_leader_epoch():
    image = image_of(
        change(isr=[1]),
        base=one_broker(*topic("a", 1, isr=[1, 2], replicas=[1, 2], directories=[DIRECTORY] * 2)),
    )
    partition = partition_of(image, "a")
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((1,), 0, 1)


def test_a_replica_that_moves_in_has_no_directory_yet():
    image = image_of(change(replicas=[2, 1]), base=one_broker(*topic("a", 1)))
    partition = partition_of(image, "a")
    assert partition.replicas == (2, 1)
    assert partition.directories == (UNASSIGNED_DIRECTORY, DIRECTORY)


def test_directories_of_a_change_record_apply():
    other = bytes([9]) * 16
    image = image_of(change(directories=[other]), base=one_broker(*topic("a", 1)))
    assert partition_of(image, "a").directories == (other,)


def test_a_partition_of_an_old_version_has_its_directories_migrating():
    image = one_broker(*topic("a", 1, directories=[]))
    assert partition_of(image, "a").directories == (MIGRATING_DIRECTORY,)


def test_eligible_leaders_come_with_changes_and_go_with_clear_elr():
    two: dict[str, Any] = {"replicas": [1, 3], "directories": [DIRECTORY] * 2}
    base = one_broker(*topic("a", 1, **two), *topic("b", 2, **two))
    fields = {"eligible_leader_replicas": [3], "last_known_elr": [4]}
    image = image_of(change(**fields), change(number=2, **fields), base=base)
    assert partition_of(image, "a").eligible_leader_replicas == (3,)
    image = image_of(metadata_record(KIND.CLEAR_ELR, topic_name="a"), base=image)
    assert partition_of(image, "a").last_known_elr == ()
    assert partition_of(image, "b").last_known_elr == (4,)
    image = image_of(metadata_record(KIND.CLEAR_ELR, topic_name=""), base=image)
    assert partition_of(image, "b").eligible_leader_replicas == ()


def test_a_removed_topic_takes_its_configs_along():
    base = one_broker(*topic("a", 1), config_record(ResourceType.TOPIC, "a", "x", "1"))
    image, changed = build(base, metadata_record(KIND.REMOVE_TOPIC, topic_id=topic_id(1)))
    assert not image.topics
    assert not image.topics_by_id
    assert not image.configs
    assert changed.deleted == [base.topics["a"]]
    assert set(changed.configs) == {(ResourceType.TOPIC, "a")}


def test_a_topic_that_is_made_anew_is_both_deleted_and_created():
    base = one_broker(*topic("a", 1))
    image, changed = build(
        base, metadata_record(KIND.REMOVE_TOPIC, topic_id=topic_id(1)), *topic("a", 2)
    )
    assert image.topics["a"].topic_id == topic_id(2)
    assert changed.created == {"a"}
    assert [removed.topic_id for removed in changed.deleted] == [topic_id(1)]


def test_topic_created_and_removed_between_images_is_not_reported():
    _, changed = build(
        one_broker(), *topic("a", 1), metadata_record(KIND.REMOVE_TOPIC, topic_id=topic_id(1))
    )
    assert (changed.created, changed.deleted, changed.changed) == (set(), [], set())


def test_new_partitions_change_existing_topics_only():
    base = one_broker(*topic("a", 1))
    new_partition = topic("a", 1, partitions=2)[2]
    _, changed = build(base, new_partition, *topic("b", 2))
    assert changed.changed == {"a"}
    assert changed.created == {"b"}


def test_a_config_without_value_is_removed_and_the_last_one_takes_the_resource_along():
    base = image_of(config_record(ResourceType.BROKER, "", "x", "1"))
    assert base.config(ResourceType.BROKER, "") == {"x": "1"}
    image, changed = build(base, config_record(ResourceType.BROKER, "", "x", None))
    assert image.configs == {}
    assert set(changed.configs) == {(ResourceType.BROKER, "")}


def test_a_feature_at_level_zero_is_not_finalized():
    def level(value):
        return metadata_record(KIND.FEATURE_LEVEL, name="metadata.version", feature_level=value)

    assert image_of(level(30)).features == {"metadata.version": 30}
    assert image_of(level(30), level(0)).features == {}


def test_a_broker_is_fenced_unfenced_and_unregistered():
    def moved(**fields):
        return metadata_record(
            KIND.BROKER_REGISTRATION_CHANGE, broker_id=1, broker_epoch=5, **fields
        )

    image = image_of(broker(fenced=True))
    assert not image.brokers[1].is_active
    image = image_of(moved(fenced=-1), base=image)
    assert image.brokers[1].is_active
    image = image_of(moved(in_controlled_shutdown=1), base=image)
    assert not image.brokers[1].is_active
    assert not image.brokers[1].fenced
    other = bytes([9]) * 16
    image = image_of(moved(log_dirs=[other], cordoned_log_dirs=[]), base=image)
    assert image.brokers[1].log_directories == (other,)
    assert image.brokers[1].cordoned_log_directories == ()
    image = image_of(metadata_record(KIND.FENCE_BROKER, id=1, epoch=5), base=image)
    assert image.brokers[1].fenced
    image = image_of(metadata_record(KIND.UNFENCE_BROKER, id=1, epoch=5), base=image)
    assert not image.brokers[1].fenced
    unregistration = metadata_record(KIND.UNREGISTER_BROKER, broker_id=1, broker_epoch=5)
    assert image_of(unregistration, base=image).brokers == {}


def test_a_controller_that_is_unregistered_is_not_in_the_image():
    def registered(node_id):
        return metadata_record(KIND.REGISTER_CONTROLLER, controller_id=node_id)

    both = image_of(registered(7), registered(8))
    unregistration = metadata_record(KIND.UNREGISTER_CONTROLLER, controller_id=7)
    after = image_of(unregistration, base=both)
    assert set(after.controllers) == {8}
    assert set(both.controllers) == {7, 8}
    assert image_of(unregistration, base=after).controllers == after.controllers


def test_the_next_producer_id_starts_at_zero_and_follows_the_records():
    assert ClusterImage().next_producer_id == 0
    record = metadata_record(KIND.PRODUCER_IDS, broker_id=1, broker_epoch=5, next_producer_id=1000)
    assert image_of(record).next_producer_id == 1000


def test_records_of_a_transaction_count_at_its_end():
    begin = metadata_record(KIND.BEGIN_TRANSACTION, name="t")
    image = image_of(broker(), begin, *topic("a", 1))
    assert not image.topics
    assert image.open_transaction is not None
    assert len(image.open_transaction) == 2
    image = image_of(metadata_record(KIND.END_TRANSACTION), base=image)
    assert list(image.topics) == ["a"]
    assert image.open_transaction is None


def test_records_of_an_aborted_transaction_never_count():
    image = image_of(
        broker(),
        metadata_record(KIND.BEGIN_TRANSACTION),
        *topic("a", 1),
        metadata_record(KIND.ABORT_TRANSACTION, reason="why not"),
        *topic("b", 2),
    )
    assert list(image.topics) == ["b"]


KEPT = [
    (
        metadata_record(KIND.ACCESS_CONTROL_ENTRY, id=bytes([1]) * 16, principal="User:a"),
        metadata_record(KIND.REMOVE_ACCESS_CONTROL_ENTRY, id=bytes([1]) * 16),
    ),
    (
        metadata_record(KIND.USER_SCRAM_CREDENTIAL, name="a", mechanism=1, iterations=4096),
        metadata_record(KIND.REMOVE_USER_SCRAM_CREDENTIAL, name="a", mechanism=1),
    ),
    (
        metadata_record(KIND.DELEGATION_TOKEN, token_id="t"),
        metadata_record(KIND.REMOVE_DELEGATION_TOKEN, token_id="t"),
    ),
    (
        metadata_record(
            KIND.CLIENT_QUOTA,
            entity=[{"entity_type": "user", "entity_name": None}],
            key="producer_byte_rate",
            value=1.5,
        ),
        metadata_record(
            KIND.CLIENT_QUOTA,
            entity=[{"entity_type": "user", "entity_name": None}],
            key="producer_byte_rate",
            remove=True,
        ),
    ),
]


@pytest.mark.parametrize(("record", "removal"), KEPT, ids=lambda each: each.type.name)
def test_unserved_record_types_are_kept_for_snapshots_until_removed(record, removal):
    image = image_of(record)
    assert list(to_records(image)) == [record]
    assert list(to_records(image_of(removal, base=image))) == []


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (change(), ErrorCode.UNKNOWN_TOPIC_ID),
        (metadata_record(KIND.REMOVE_TOPIC, topic_id=topic_id(3)), ErrorCode.UNKNOWN_TOPIC_ID),
        (
            metadata_record(KIND.BROKER_REGISTRATION_CHANGE, broker_id=4),
            ErrorCode.BROKER_ID_NOT_REGISTERED,
        ),
        (
            MetadataRecord(99, 0, None),  # type: ignore[arg-type]  # no such type
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_a_record_that_makes_no_sense_stops_the_replay(record, code):
    with pytest.raises(KafkaError) as raised:
        image_of(record)
    assert raised.value.code is code


def test_a_change_of_a_partition_that_does_not_exist_stops_the_replay():
    with pytest.raises(KafkaError, match="partition 7 of a"):
        image_of(change(index=7), base=one_broker(*topic("a", 1)))


def test_a_snapshot_begins_with_the_metadata_version():
    image = image_of(
        *topic("a", 1, leader=NO_LEADER),
        metadata_record(KIND.FEATURE_LEVEL, name="group.version", feature_level=1),
        metadata_record(KIND.FEATURE_LEVEL, name="metadata.version", feature_level=30),
    )
    first = next(iter(to_records(image)))
    assert first.body.name == "metadata.version"
