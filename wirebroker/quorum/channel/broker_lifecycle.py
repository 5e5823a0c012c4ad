"""This broker's life in the cluster: registration, unfencing, controlled shutdown.

Source: Kafka's BrokerLifecycleManager (KIP-631).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import random_uuid
from wirebroker.coordinator.controller.features.feature_control import (
    SUPPORTED_FEATURES,
    has_cordoned_directories,
)
from wirebroker.coordinator.controller.image.cluster_image import feature_ranges
from wirebroker.disks.data_directory import cordoned_ids
from wirebroker.quorum.channel.controller_channel import check_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

# As in Kafka.
_RETRY_S = 0.05
# As in Kafka.
_SHUTDOWN_S = 300.0


class BrokerLifecycle:
    """One incarnation of this broker.

    Attributes:
        broker_epoch: Of this incarnation; -1 before it is registered.
    """

    __slots__ = (
        "_channel",
        "_directories",
        "_incarnation_id",
        "_metadata",
        "_registration",
        "broker_epoch",
        "node_id",
    )

    def __init__(
        self,
        channel: ControllerChannel,
        metadata: MetadataFollower,
        *,
        node_id: int,
        new_uuid: Callable[[], bytes] = random_uuid,
    ) -> None:
        self.node_id = node_id
        self.broker_epoch = -1
        self._channel = channel
        self._metadata = metadata
        self._directories: Sequence[DataDirectory] = ()
        self._incarnation_id = new_uuid()
        # For `register_again`.
        self._registration: dict[str, Any] = {}

    async def register(
        self,
        *,
        cluster_id: str,
        endpoints: Sequence[Endpoint],
        log_directories: Sequence[bytes],
        rack: str | None = None,
        previous_broker_epoch: int = -1,
    ) -> None:
        """Register as fenced.

        `previous_broker_epoch` is that of the last incarnation if it stopped cleanly.

        Raises:
            KafkaError: The controller refuses; see register_broker.
        """
        self._registration = {
            "cluster_id": cluster_id,
            "listeners": [endpoint._asdict() for endpoint in endpoints],
            "rack": rack,
            "log_dirs": list(log_directories),
        }
        await self._send_registration(previous_broker_epoch)

    async def register_again(self) -> None:
        """Register this incarnation again after it was unregistered.

        Raises:
            KafkaError: As from `register`.
        """
        await self._send_registration(-1)

    async def _send_registration(self, previous_broker_epoch: int) -> None:
        answer = check_answer(
            await self._channel.ask(
                ApiKey.BROKER_REGISTRATION,
                {
                    **self._registration,
                    "broker_id": self.node_id,
                    "incarnation_id": self._incarnation_id,
                    "features": feature_ranges(SUPPORTED_FEATURES),
                    "previous_broker_epoch": previous_broker_epoch,
                },
            )
        )
        self.broker_epoch = answer.broker_epoch

    def watch_disks(self, directories: Sequence[DataDirectory]) -> None:
        """Report the state of these directories to the controller."""
        self._directories = directories

    async def unfence(self) -> None:
        """Wait until this broker has applied its registration and may serve.

        Raises:
            KafkaError: The controller does not know this incarnation.
        """
        while (await self._heartbeat()).is_fenced:
            await pause(_RETRY_S)

    async def disks_failed(self, directory_ids: Sequence[bytes]) -> None:
        """Report offline directories.

        Raises:
            KafkaError: The controller does not know this incarnation, or cannot record it.
        """
        await self._heartbeat(offline_log_dirs=list(directory_ids))

    async def shut_down(self) -> None:
        """Wait until this broker leads nothing and is fenced.

        Raises:
            KafkaError: The controller does not know this incarnation; REQUEST_TIMED_OUT.
        """
        try:
            async with asyncio.timeout(_SHUTDOWN_S):
                # The first reports the shutdown; without other brokers, the second allows it.
                await self._heartbeat(want_shut_down=True)
                while not (await self._heartbeat(want_shut_down=True)).should_shut_down:
                    await pause(_RETRY_S)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "the controller did not approve the shutdown"
            ) from None

    def _cordoned(self) -> dict[str, list[bytes]]:
        if not self._directories or not has_cordoned_directories(self._metadata.image.features):
            return {}
        return {"cordoned_log_dirs": cordoned_ids(self._directories)}

    async def _heartbeat(
        self, *, want_shut_down: bool = False, offline_log_dirs: Sequence[bytes] = ()
    ) -> Any:
        body = {
            "broker_id": self.node_id,
            "broker_epoch": self.broker_epoch,
            "current_metadata_offset": self._metadata.image.offset - 1,
            "want_fence": False,
            "want_shut_down": want_shut_down,
            "offline_log_dirs": list(offline_log_dirs),
            **self._cordoned(),
        }
        return check_answer(await self._channel.ask(ApiKey.BROKER_HEARTBEAT, body))
