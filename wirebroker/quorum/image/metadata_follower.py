"""The cluster as this node sees it: committed records in, the image and its changes out.

    follow(records) --> image and change --> subscribers, in order, each awaited --> `image`

It knows nothing of who wrote the records. A controller in the same process has applied them already
and hands over what came of it (`publish`); both ways give the same image and the same change.

Laws:
- `image` shows only what every subscriber has followed, so that whoever is told of a topic finds
  its partitions.
- Records count in the order in which they were committed; the image's offset never goes back.
- A subscriber that fails is reported; the change is a fact all the same, for it and for the others.
- A subscriber must not wait for a change that is published after the one it is following.

Source: Kafka's MetadataLoader and MetadataPublisher.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import Slices
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.coordinator.controller.image.image_change import compare_images

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.image_change import ImageChange

    Follow = Callable[[ImageChange, ClusterImage], Awaitable[None]]

LOGGER = logging.getLogger(__name__)


class _Subscriber(NamedTuple):
    name: str
    follow: Follow


class MetadataFollower:
    """The newest image that this node has followed, and who follows it."""

    __slots__ = ("_clock", "_subscribers", "image")

    def __init__(self, clock: Clock, image: ClusterImage | None = None) -> None:
        """Begin with an image that nobody has to be told of."""
        self.image = image or ClusterImage()
        self._clock = clock
        self._subscribers: list[_Subscriber] = []

    def subscribe(self, name: str, follow: Follow) -> None:
        """Have a part of this node told every change from now on, after those before it.

        Args:
            name: What it is called in a log line.
            follow: Given the change and the image after it; awaited before the next is told.
        """
        self._subscribers.append(_Subscriber(name, follow))

    async def follow(self, records: Iterable[MetadataRecord], *, offset: int, epoch: int) -> None:
        """Take in committed records that come next in the log.

        Args:
            records: In their order.
            offset: The offset after the last of them.
            epoch: The leader epoch of the last of them.

        Raises:
            KafkaError: UNSUPPORTED_VERSION: a record cannot be understood here, and nothing after
                it can be believed. The image stays as it was.
        """
        slices = Slices(self._clock)
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
            await slices.turn()
        image, change = await slices.run(builder.finish(offset=offset, epoch=epoch))
        await self.publish(change, image)

    async def difference(self, before: ClusterImage, after: ClusterImage) -> ImageChange:
        """Return what differs between two images, found in slices of the loop's time."""
        return await Slices(self._clock).run(compare_images(before, after))

    async def publish(self, change: ImageChange, image: ClusterImage) -> None:
        """Tell everybody of the next image."""
        assert image.offset >= self.image.offset, "the log does not go back"
        slices = Slices(self._clock)  # each cuts its own work, which all of them may fill
        for name, follow in self._subscribers:
            try:
                await follow(change, image)
            except Exception:
                LOGGER.exception(
                    "%s did not follow a metadata change at offset %d", name, image.offset
                )
            await slices.turn()
        self.image = image
