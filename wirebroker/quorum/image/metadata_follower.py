"""Applies committed metadata records and notifies subscribers of image changes.

Subscribers are awaited in order; then `image` shows the change, so a client that learns of a topic
finds its partitions. The failure of a subscriber is logged; the change counts nevertheless. A
controller in the same process calls `publish` with the image that it has already built.

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
    """The newest applied image, and its subscribers.

    Attributes:
        kraft_version: The level of kraft.version, which is in the log, but not in the image.
    """

    __slots__ = ("_clock", "_subscribers", "image", "kraft_version")

    def __init__(self, clock: Clock, image: ClusterImage | None = None) -> None:
        self.image = image or ClusterImage()
        self.kraft_version = 0
        self._clock = clock
        self._subscribers: list[_Subscriber] = []

    def subscribe(self, name: str, follow: Follow) -> None:
        """Call `follow` for every later change, with the change and the image after it.

        It is awaited before the next call, so it must not wait for a later change.
        """
        self._subscribers.append(_Subscriber(name, follow))

    async def follow(self, records: Iterable[MetadataRecord], *, offset: int, epoch: int) -> None:
        """Apply the next committed records, which end before `offset`.

        Raises:
            KafkaError: UNSUPPORTED_VERSION: a record is unknown, so later ones cannot be applied.
                The image is unchanged.
        """
        slices = Slices(self._clock)
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
            await slices.turn()
        image, change = await slices.run(builder.finish(offset=offset, epoch=epoch))
        await self.publish(change, image)

    async def difference(self, before: ClusterImage, after: ClusterImage) -> ImageChange:
        """Compare two images in slices."""
        return await Slices(self._clock).run(compare_images(before, after))

    async def publish(self, change: ImageChange, image: ClusterImage) -> None:
        """Notify all subscribers of the next image."""
        assert image.offset >= self.image.offset, "metadata offsets never decrease"
        slices = Slices(self._clock)  # subscribers slice only their own work
        for name, follow in self._subscribers:
            try:
                await follow(change, image)
            except Exception:  # one subscriber's fault must not stop the others
                LOGGER.exception(
                    "%s cannot apply the metadata change at offset %d", name, image.offset
                )
            await slices.turn()
        self.image = image
