"""Committed records become an image and its changes, whichever part applied them."""

import asyncio
import random
from typing import Any

import pytest

from tests.property.test_cluster_image import history
from tests.support.coordinators.kit import topic
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.quorum.image.metadata_follower import MetadataFollower


async def test_subscribers_are_called_in_order_before_the_image_changes():
    follower = MetadataFollower(SystemClock())
    calls = []

    def subscriber(name):
        async def follow(change, image):
            calls.append((name, sorted(change.created), "a" in follower.image.topics))
            assert "a" in image.topics

        return follow

    follower.subscribe("first", subscriber("first"))
    follower.subscribe("second", subscriber("second"))
    await follower.follow(topic("a", 1), offset=2, epoch=1)
    assert calls == [("first", ["a"], False), ("second", ["a"], False)]
    assert (follower.image.offset, follower.image.epoch) == (2, 1)
    assert "a" in follower.image.topics


async def test_failing_subscriber_is_logged_and_others_continue(caplog):
    follower = MetadataFollower(SystemClock())
    offsets = []

    async def failing(change, image):
        raise ValueError("no")

    async def following(change, image):
        offsets.append(image.offset)

    follower.subscribe("the bad one", failing)
    follower.subscribe("the good one", following)
    await follower.follow(topic("a", 1), offset=2, epoch=1)
    assert offsets == [2]
    assert "the bad one cannot apply the metadata change at offset 2" in caplog.text


async def test_unreadable_records_leave_the_image_unchanged():
    follower = MetadataFollower(SystemClock())
    before = follower.image
    number: Any = 99
    unknown = MetadataRecord(number, 0, None)
    with pytest.raises(KafkaError):
        await follower.follow([*topic("a", 1), unknown], offset=3, epoch=1)
    assert follower.image is before


@pytest.mark.parametrize("seed", range(5))
async def test_following_records_equals_following_images(seed):
    """The local controller passes images; a remote one sends records."""
    by_records, by_images = MetadataFollower(SystemClock()), MetadataFollower(SystemClock())
    changes: tuple[list[Any], list[Any]] = ([], [])
    for follower, received in zip((by_records, by_images), changes, strict=True):

        async def follow(change, image, received=received):
            received.append((change, image.offset))

        follower.subscribe("the test", follow)
    chance = random.Random(seed)
    remaining = history(chance)
    image = ClusterImage()
    while remaining:
        size = chance.randrange(len(remaining)) + 1
        unit, remaining = remaining[:size], remaining[size:]
        offset = image.offset + size
        image, change = ImageBuilder(image).apply_all(unit).build(offset=offset, epoch=1)
        await by_records.follow(unit, offset=offset, epoch=1)
        await by_images.publish(change, image)
        assert by_records.image == by_images.image == image
    assert changes[0] == changes[1]


async def test_long_record_set_does_not_block_the_loop():
    follower = MetadataFollower(SystemClock())
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)  # noqa: TID251 - to see who has a turn

    counting = asyncio.create_task(count())
    records = [record for number in range(8_000) for record in topic(f"t{number}", number % 256)]
    ids = [number.to_bytes(16, "big") for number in range(8_000)]
    for number, record in enumerate(records):
        record.body.topic_id = ids[number // 2]
    kinds = {record.type for record in records}
    await follower.follow(records, offset=len(records), epoch=1)
    counting.cancel()
    assert kinds == {RecordType.TOPIC, RecordType.PARTITION}
    assert len(follower.image.topics) == 8_000
    assert turns > 2
