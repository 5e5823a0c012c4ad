"""This broker's membership in a cluster whose controller is in this process.

If it is unregistered, it registers again and continues to serve. Heartbeats only report changes
(offline and cordoned directories).

Source: Kafka's BrokerLifecycleManager (KIP-631; KIP-858 for the directories).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.cluster_image import METADATA_VERSION
from wirebroker.disks.data_directory import offline_ids
from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

LOGGER = logging.getLogger("wirebroker")

# Between checks whether a metadata change is applied.
_SOON_S = 0.02


class OwnLifecycle(BrokerLifecycle):
    """One incarnation of the broker."""

    __slots__ = ("_cordoning", "_is_serving", "_reporting", "_returning")

    def __init__(
        self, channel: ControllerChannel, metadata: MetadataFollower, *, node_id: int
    ) -> None:
        super().__init__(channel, metadata, node_id=node_id)
        # From unfencing until the stop.
        self._is_serving = False
        self._reporting: asyncio.Task[None] | None = None
        self._cordoning: asyncio.Task[None] | None = None
        self._returning: asyncio.Task[None] | None = None
        metadata.subscribe("the membership", self._look)

    async def unfence(self) -> None:
        """Wait until this broker may serve."""
        if self.has_others and (offline := offline_ids(self._directories)):
            await self.disks_failed(offline)  # those that have failed since the registration
        await super().unfence()
        self._is_serving = True
        self.disk_failed()

    async def shut_down(self) -> None:
        """Wait until this broker leads nothing."""
        await self.end()
        await super().shut_down()

    async def end(self) -> None:
        """Cancel the reports in progress."""
        self._is_serving = False
        reports = (self._reporting, self._cordoning, self._returning)
        tasks = [task for task in reports if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def has_others(self) -> bool:
        """Whether other brokers are active."""
        brokers = self._metadata.image.brokers.values()
        return any(broker.is_active for broker in brokers if broker.node_id != self.node_id)

    def disk_failed(self) -> None:
        """Report offline directories so that other brokers lead their partitions.

        Without other brokers the partitions stay led here. Only a serving broker reports, because a
        heartbeat requests to serve.
        """
        own_broker = self._metadata.image.brokers.get(self.node_id)
        is_active = own_broker is not None and own_broker.is_active
        if is_active and self.has_others and offline_ids(self._directories):
            self._reporting = self._begin(
                self._reporting, self._report_failed_disks(), "failed disks"
            )

    async def _report_failed_disks(self) -> None:
        reported: list[bytes] = []
        try:
            while reported != (offline := offline_ids(self._directories)):
                await self.disks_failed(offline)
                reported = offline
        except KafkaError as error:
            LOGGER.warning(
                "cannot give up the partitions on failed disks: %s",
                error.message or error.code.name,
            )

    def report_cordoned(self) -> None:
        """Report the cordoned directories if the metadata has others."""
        if self._is_serving and self._has_unreported_cordons():
            self._begin_cordoning(self._metadata.image.offset)

    def _begin_cordoning(self, offset: int) -> None:
        report = self._tell_cordoned(offset)
        self._cordoning = self._begin(self._cordoning, report, "cordoned directories")

    def _has_unreported_cordons(self) -> bool:
        own_broker = self._metadata.image.brokers.get(self.node_id)
        cordoned = self._cordoned()
        return (
            bool(cordoned)
            and own_broker is not None
            and set(cordoned["cordoned_log_dirs"]) != set(own_broker.cordoned_log_directories or ())
        )

    async def _tell_cordoned(self, offset: int) -> None:
        """Report until the metadata, from `offset` on, agrees."""
        try:
            while self._metadata.image.offset < offset:
                await pause(_SOON_S)
            while self._has_unreported_cordons():
                await self._heartbeat()
        except KafkaError as error:
            LOGGER.warning(
                "cannot report the cordoned directories, which still receive replicas: %s",
                error.message or error.code.name,
            )

    async def _look(self, change: ImageChange, image: ClusterImage) -> None:
        if self._is_serving and self.node_id not in image.brokers:
            # In a task, because it waits for later changes.
            self._returning = self._begin(self._returning, self._return(), "register again")
        elif self._is_serving and METADATA_VERSION in change.features:
            self._begin_cordoning(image.offset)

    async def _return(self) -> None:
        try:
            while not await self._has_returned():
                await pause(_SOON_S)
        except KafkaError as error:
            LOGGER.error(  # noqa: TRY400 - the controller's decision, not a bug
                "broker %d was unregistered and cannot register again: %s",
                self.node_id,
                error.message or error.code.name,
            )
        else:
            LOGGER.warning("broker %d was unregistered: registered it again", self.node_id)
            self.disk_failed()  # all were registered as online

    async def _has_returned(self) -> bool:
        """Register and unfence; return whether it is still registered."""
        await self.register_again()
        try:
            await super().unfence()
        except KafkaError as error:
            if error.code is not ErrorCode.STALE_BROKER_EPOCH:
                raise
            return False
        return self.node_id in self._metadata.image.brokers

    def _begin(
        self, task: asyncio.Task[None] | None, work: Coroutine[Any, Any, None], name: str
    ) -> asyncio.Task[None]:
        if task is not None and not task.done():
            work.close()
            return task
        return asyncio.create_task(work, name=name)
