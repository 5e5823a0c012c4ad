"""Leaderships go back to preferred replicas, every few minutes: the controller's own duty.

Source: Kafka's QuorumController (maybeBalancePartitionLeaders).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.clock import pause
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.leader_election import give_back

if TYPE_CHECKING:
    from wirebroker.cluster.quorum_controller import QuorumController

LOGGER = logging.getLogger(__name__)


class LeaderBalancing:
    """Runs until it is stopped; does nothing if auto.leader.rebalance.enable is off."""

    __slots__ = ("_controller", "_task")

    def __init__(self, controller: QuorumController) -> None:
        self._controller = controller
        config = controller.rules.config
        self._task: asyncio.Task[None] | None = None
        if config.bool("auto.leader.rebalance.enable"):
            interval_s = config.int("leader.imbalance.check.interval.seconds")
            self._task = asyncio.create_task(self._run(interval_s), name="balance leaders")

    async def stop(self) -> None:
        """Balance no more; what was submitted is finished by the controller."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, interval_s: int) -> None:
        while True:
            await pause(interval_s)
            await self.balance()

    async def balance(self) -> None:
        """Give back what can be given back now."""
        controller = self._controller
        try:
            moved = await controller.submit(partial(give_back, controller.rules.config))
        except KafkaError as error:
            LOGGER.warning("leaderships stay where they are for now: %s", error)
            return
        if moved:
            LOGGER.info("%d leadership(s) went back to preferred replicas", moved)
