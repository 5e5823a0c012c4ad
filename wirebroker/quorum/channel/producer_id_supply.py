"""Producer ids for this broker, from blocks that the controller allocates.

Source: Kafka's RPCProducerIdManager.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.brokers.producer_ids import ProducerIdBlock, ProducerIds
from wirebroker.quorum.channel.controller_channel import check_answer

if TYPE_CHECKING:
    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.channel.controller_channel import ControllerChannel


class ProducerIdSupply:
    """The producer ids of this broker."""

    __slots__ = ("_controller", "_ids", "_lifecycle", "_refill")

    def __init__(self, controller: ControllerChannel, lifecycle: BrokerLifecycle) -> None:
        self._controller = controller
        self._lifecycle = lifecycle
        self._ids = ProducerIds()
        # Shared by all waiters.
        self._refill: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether an id is available."""
        return self._ids.is_ready

    def take(self) -> int:
        """Return an unused id.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS: none is available; see until_ready.
        """
        producer_id = self._ids.take()
        if producer_id is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id is available")
        return producer_id

    async def until_ready(self) -> None:
        """Wait until an id is available.

        Raises:
            KafkaError: The allocation failed.
        """
        while not self._ids.is_ready:
            if self._refill is None:
                self._refill = asyncio.create_task(self._allocate(), name="producer ids")
            # It continues if one waiter is canceled.
            await asyncio.shield(self._refill)

    async def _allocate(self) -> None:
        try:
            lifecycle = self._lifecycle
            body = {"broker_id": lifecycle.node_id, "broker_epoch": lifecycle.broker_epoch}
            answer = check_answer(await self._controller.ask(ApiKey.ALLOCATE_PRODUCER_IDS, body))
            self._ids.offer(ProducerIdBlock(answer.producer_id_start, answer.producer_id_len))
        finally:
            self._refill = None
