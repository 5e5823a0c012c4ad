"""Producer ids for this broker: out of a block, and a new block when that is used up.

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
    """Gives ids out; a block is allocated by the controller."""

    __slots__ = ("_controller", "_ids", "_lifecycle", "_refill")

    def __init__(self, controller: ControllerChannel, lifecycle: BrokerLifecycle) -> None:
        self._controller = controller
        self._lifecycle = lifecycle
        self._ids = ProducerIds()
        # The allocation under way, if any; all who need an id wait for the same one.
        self._refill: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the next id can be had at once."""
        return self._ids.is_ready

    def take(self) -> int:
        """Return an id that nobody had.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS: there is none, see until_ready.
        """
        producer_id = self._ids.take()
        if producer_id is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id is at hand")
        return producer_id

    async def until_ready(self) -> None:
        """Wait until the next id can be had at once.

        Raises:
            KafkaError: No block can be had.
        """
        while not self._ids.is_ready:
            if self._refill is None:
                self._refill = asyncio.create_task(self._allocate(), name="producer ids")
            # One allocation serves all who wait, and goes on if one of them is cancelled.
            await asyncio.shield(self._refill)

    async def _allocate(self) -> None:
        try:
            lifecycle = self._lifecycle
            body = {"broker_id": lifecycle.node_id, "broker_epoch": lifecycle.broker_epoch}
            answer = check_answer(await self._controller.ask(ApiKey.ALLOCATE_PRODUCER_IDS, body))
            self._ids.offer(ProducerIdBlock(answer.producer_id_start, answer.producer_id_len))
        finally:
            self._refill = None
