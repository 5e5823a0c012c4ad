"""The contents of an image change, and the parts that stay shared."""

from tests.support.coordinators.kit import broker, image_of, topic, topic_id
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.image.cluster_image import (
    ClusterImage,
    ResourceType,
    config_record,
)
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.coordinator.controller.image.image_change import (
    ConfigChange,
    change_between,
    compare_images,
)


def build(image, *records):
    builder = ImageBuilder(image).apply_all(records)
    return builder.build(offset=image.offset + len(records), epoch=1)


def isr_change(number, index, isr):
    return metadata_record(
        RecordType.PARTITION_CHANGE, topic_id=topic_id(number), partition_id=index, isr=isr
    )


def leaf_objects(mapping):
    """Return the ids of the parts that two maps share if they are unchanged."""
    return {id(part) for part in (*mapping._buckets, *mapping._order)}


def test_one_change_to_one_partition_of_10_000_copies_three_buckets():
    records = [
        record for number in range(100) for record in topic(f"t{number}", number, partitions=100)
    ]
    image = image_of(broker(), *records)
    after, change = build(image, isr_change(7, 3, [1, 2]))
    [(changed, partition)] = change.partitions()
    assert (changed.name, partition.before.isr, partition.after.isr) == ("t7", (1,), (1, 2))
    for old, new in (
        (image.topics, after.topics),
        (image.topics_by_id, after.topics_by_id),
        (image.topics["t7"].partitions, after.topics["t7"].partitions),
    ):
        assert len(leaf_objects(new) - leaf_objects(old)) == 1
    unchanged = [name for name in image.topics if image.topics[name] is after.topics[name]]
    assert len(unchanged) == 99
    assert after.configs is image.configs
    assert after.brokers is image.brokers


def test_several_changes_to_one_partition_are_one():
    image = image_of(broker(), *topic("a", 1))
    after, change = build(image, isr_change(1, 0, [1, 2]), isr_change(1, 0, [1, 2, 3]))
    [(_, partition)] = change.partitions()
    assert partition.before == image.partition("a", 0)
    assert partition.after == after.partition("a", 0)
    assert partition.after.partition_epoch == 2


def test_new_partitions_have_no_previous_state():
    image = image_of(broker(), *topic("a", 1))
    _, new_partition, *_ = topic("a", 1, partitions=2)[0:1] + topic("a", 1, partitions=2)[2:]
    _, change = build(image, new_partition, *topic("b", 2))
    assert {(t.name, p.after.index, p.before) for t, p in change.partitions()} == {
        ("a", 1, None),
        ("b", 0, None),
    }
    assert (change.created, change.changed) == ({"b"}, {"a"})


def test_topic_created_and_removed_in_one_change_is_not_reported():
    remove = metadata_record(RecordType.REMOVE_TOPIC, topic_id=topic_id(1))
    _, change = build(ClusterImage(), *topic("a", 1), remove)
    assert (change.topics, change.deleted) == ({}, [])


def test_removed_topic_is_reported_with_its_last_state_and_configs():
    image = image_of(broker(), *topic("a", 1), config_record(ResourceType.TOPIC, "a", "x", "1"))
    remove = metadata_record(RecordType.REMOVE_TOPIC, topic_id=topic_id(1))
    after, change = build(image, isr_change(1, 0, [1, 2]), remove, *topic("a", 2))
    assert change.deleted == [image.topics["a"]]
    assert change.created == {"a"}
    assert change.configs == {(ResourceType.TOPIC, "a"): {"x": ConfigChange("1", None)}}
    assert after.topic_config("a") == {}


def test_config_broker_and_feature_changes_have_previous_values():
    key = (ResourceType.BROKER, "")
    image = image_of(broker(1), broker(2), config_record(*key, "x", "1"))
    level = metadata_record(RecordType.FEATURE_LEVEL, name="f", feature_level=2)
    unregistration = metadata_record(RecordType.UNREGISTER_BROKER, broker_id=2, broker_epoch=5)
    after, change = build(
        image, config_record(*key, "x", "2"), config_record(*key, "x", "3"), level, unregistration
    )
    assert change.configs == {key: {"x": ConfigChange("1", "3")}}
    assert change.features == {"f": (0, 2)}
    assert change.brokers == {2: (image.brokers[2], None)}
    assert 2 not in after.brokers


def test_difference_of_two_images_has_topics_and_configs():
    def config(name, key, value):
        return config_record(ResourceType.TOPIC, name, key, value)

    before = image_of(
        broker(),
        *topic("a", 1),
        *topic("b", 2),
        *topic("c", 3),
        config("a", "retention.ms", "1"),
        config("b", "retention.ms", "1"),
    )
    after, change = build(
        before,
        isr_change(1, 0, [1, 2]),
        metadata_record(RecordType.REMOVE_TOPIC, topic_id=topic_id(3)),
        config("a", "retention.ms", None),
        config("a", "segment.ms", "2"),
        *topic("d", 4),
        config("d", "retention.ms", "3"),
    )
    difference = change_between(before, after)
    assert (difference.deleted, difference.topics) == (change.deleted, change.topics)
    assert difference.configs == {
        (ResourceType.TOPIC, "a"): {
            "retention.ms": ConfigChange("1", None),
            "segment.ms": ConfigChange(None, "2"),
        },
        (ResourceType.TOPIC, "d"): {"retention.ms": ConfigChange(None, "3")},
    }
    assert difference.configs == change.configs
    assert change_between(after, after) == change_between(before, before)


def test_large_topics_are_placed_and_compared_in_steps():
    builder = ImageBuilder(ClusterImage()).apply_all(topic("large", 1, partitions=2_000))
    assert sum(1 for _ in builder.finish(offset=1, epoch=1)) > 2_000 / 300
    image = image_of(*topic("large", 1, partitions=2_000))
    assert sum(1 for _ in compare_images(ClusterImage(), image)) > 2_000 / 300
    assert len(change_between(ClusterImage(), image).topics[topic_id(1)].partitions) == 2_000
