"""Registers this node's controller with the active one, which may be in another process (KIP-919).

A controller registers when the metadata has no registration of this process, and again if that is
removed. Brokers and tools then find it.

Source: Kafka's ControllerRegistrationManager.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.features.feature_control import has_registered_controllers
from wirebroker.net.client.failures import FailureLines, RetryPauses
from wirebroker.net.client.settings import Backoff
from wirebroker.quorum.channel.controller_channel import check_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

LOGGER = logging.getLogger(__name__)

# As in Kafka.
_BACKOFF = Backoff(first_s=0.1, most_s=10.0)


class ControllerRegistration:
    """The registration of one controller.

    Args:
        channel: To the active controller.
        metadata: What this node has applied.
        registration: The fields of the request.
    """

    __slots__ = (
        "_channel",
        "_is_accepted",
        "_lines",
        "_metadata",
        "_pauses",
        "_registration",
        "_task",
    )

    def __init__(
        self,
        channel: ControllerChannel,
        metadata: MetadataFollower,
        registration: Mapping[str, Any],
    ) -> None:
        self._channel = channel
        self._metadata = metadata
        self._registration = registration
        node_id = registration["controller_id"]
        self._pauses = RetryPauses(_BACKOFF, seed=node_id)
        self._lines = FailureLines(LOGGER, f"controller {node_id} is registered")
        self._task: asyncio.Task[None] | None = None
        # Until this node has applied the record.
        self._is_accepted = False

    def start(self) -> None:
        """Register if that is necessary, now and after each change of the metadata."""
        self._metadata.subscribe("the registration of this controller", self._look)
        self._begin(self._metadata.image)

    async def stop(self) -> None:
        """Stop, and close the connections."""
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self._channel.close()

    async def _look(self, change: ImageChange, image: ClusterImage) -> None:
        del change
        self._begin(image)

    def _begin(self, image: ClusterImage) -> None:
        if self._is_due(image) and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._register(), name="register this controller")

    def _is_due(self, image: ClusterImage) -> bool:
        if not has_registered_controllers(image.features):
            return False
        record = image.controllers.get(self._registration["controller_id"])
        incarnation_id = self._registration["incarnation_id"]
        if record is not None and record.body.incarnation_id == incarnation_id:
            self._is_accepted = False
            return False
        return not self._is_accepted

    async def _register(self) -> None:
        while True:
            try:
                request = self._channel.ask(ApiKey.CONTROLLER_REGISTRATION, self._registration)
                check_answer(await request)
            except KafkaError as error:
                self._pauses.add()
                reason = error.message or error.code.name
                self._lines.add(error.code.name, f"cannot register this controller: {reason}")
                await pause(self._pauses.next_s)
            else:
                self._is_accepted = True
                self._lines.end()
                self._pauses.end()
            if not self._is_due(self._metadata.image):
                return
