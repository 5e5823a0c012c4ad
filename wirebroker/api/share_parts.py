"""The parts of a broker that serve share groups, built with the first request that needs them.

Most brokers serve none; these parts and their modules would take a tenth of a broker's start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.share.default_persister import DefaultPersister
    from wirebroker.share.latest_offsets import LatestOffsets
    from wirebroker.share.share_partition_manager import SharePartitionManager


class ShareParts(NamedTuple):
    """The parts."""

    persister: DefaultPersister
    latest_offsets: LatestOffsets
    partitions: SharePartitionManager


class LateShareParts:
    """The parts of one broker; `build` uses its current configuration and metadata."""

    __slots__ = ("_build", "_parts")

    def __init__(self, build: Callable[[], ShareParts]) -> None:
        self._build = build
        self._parts: ShareParts | None = None

    @property
    def built(self) -> ShareParts | None:
        """The parts, or None if no request has needed them."""
        return self._parts

    def get(self) -> ShareParts:
        """Return the parts; the first call builds and starts them."""
        if self._parts is None:
            self._parts = self._build()
            self._parts.partitions.start()
        return self._parts

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Apply a metadata change that this node's share coordinator has applied."""
        parts = self._parts
        if parts is not None:
            await parts.persister.apply(change, image)
            await parts.partitions.apply(change, image)

    def use_config(self, config: Config) -> None:
        """Apply a configuration."""
        if self._parts is not None:
            self._parts.partitions.use_config(config)

    async def stop(self) -> None:
        """Stop; writes in progress are dropped."""
        if self._parts is not None:
            await self._parts.partitions.stop()
            await self._parts.persister.stop()
