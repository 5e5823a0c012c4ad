"""Fences brokers whose sessions have timed out.

Source: Kafka's ReplicationControlManager.maybeFenceReplicas.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.coordinator.controller.controller_machine import SilentBroker

LOGGER = logging.getLogger(__name__)


class BrokerFencing:
    """The operations in progress; `fence` runs one and returns whether it has fenced the broker."""

    __slots__ = ("_fence", "_tasks")

    def __init__(self, fence: Callable[[SilentBroker], Awaitable[bool]]) -> None:
        self._fence = fence
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, _engine: object, silent: SilentBroker) -> None:
        """Fence a broker in a task; a failure is logged and retried at the next timeout."""
        task = asyncio.create_task(self._run(silent), name=f"fence broker {silent.node_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for the operations in progress."""
        await asyncio.gather(*self._tasks)

    async def _run(self, silent: SilentBroker) -> None:
        try:
            is_fenced = await self._fence(silent)
        except KafkaError as error:
            LOGGER.warning("cannot fence broker %d: %s", silent.node_id, error)
            return
        if is_fenced:
            LOGGER.warning("fenced broker %d: its session timed out", silent.node_id)
