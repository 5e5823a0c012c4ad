"""Periodic duties of the controller: leader elections, and removal of expired delegation tokens.

Source: Kafka's QuorumController (registerMaybeRebalance, registerElectUnclean,
sweepExpiredDelegationTokens).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.partitions.leader_duties import (
    MOST_ELECTED,
    elect_uncleanly,
    give_back,
)
from wirebroker.coordinator.controller.security.token_control import has_tokens, remove_expired

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.quorum.controller.quorum_controller import QuorumController

LOGGER = logging.getLogger(__name__)

# The limit for event loop timers.
_LONGEST_PAUSE_S: Final = 86_400.0


class ControllerDuties:
    """Runs the duties that the configuration enables while this is the active controller."""

    __slots__ = ("_controller", "_tasks")

    def __init__(self, controller: QuorumController, *, serves_others: bool = True) -> None:
        """Start; `serves_others` means that other brokers may lead."""
        self._controller = controller
        self._tasks: list[asyncio.Task[None]] = []
        config = controller.rules.config
        if serves_others and config.bool("auto.leader.rebalance.enable"):
            self._begin(self.balance, config.int("leader.imbalance.check.interval.seconds"))
        interval_ms = config.int("unclean.leader.election.interval.ms")
        self._begin(self.elect_uncleanly, interval_ms / 1_000)
        if has_tokens(config):
            interval_s = config.int("delegation.token.expiry.check.interval.ms") / 1_000
            interval_s = min(interval_s, _LONGEST_PAUSE_S)
            self._begin(self.remove_expired_tokens, interval_s, name="remove expired tokens")

    def _begin(
        self,
        duty: Callable[[], Awaitable[None]],
        interval_s: float,
        *,
        name: str = "regular elections",
    ) -> None:
        self._tasks.append(asyncio.create_task(self._repeat(duty, interval_s), name=name))

    async def _repeat(self, duty: Callable[[], Awaitable[None]], interval_s: float) -> None:
        while True:
            await pause(interval_s)
            if self._controller.is_active:
                await duty()

    async def stop(self) -> None:
        """Stop; the controller finishes what was submitted."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def balance(self) -> None:
        """Return leaderships to preferred replicas."""
        controller = self._controller
        try:
            moved = await controller.submit(partial(give_back, controller.rules.config))
        except KafkaError as error:
            LOGGER.warning("cannot elect preferred leaders now: %s", error)
            return
        if moved:
            LOGGER.info("moved %d leadership(s) back to preferred replicas", moved)

    async def elect_uncleanly(self) -> None:
        """Elect replicas that may lack records, where the configuration allows it."""
        controller = self._controller
        elected = MOST_ELECTED
        while elected == MOST_ELECTED:
            try:
                elected = await controller.submit(partial(elect_uncleanly, controller.rules.config))
            except KafkaError as error:
                LOGGER.warning("cannot elect unclean leaders now: %s", error)
                return
            if elected:
                LOGGER.warning(
                    "elected replicas that may lack records as leaders of %d partition(s)"
                    " (unclean.leader.election.enable)",
                    elected,
                )

    async def remove_expired_tokens(self) -> None:
        """Remove the expired tokens, which are already unusable."""
        try:
            removed = await self._controller.submit(remove_expired)
        except KafkaError as error:
            LOGGER.warning("cannot remove expired delegation tokens now: %s", error)
            return
        for token in removed:
            LOGGER.info("delegation token %s of %s has expired", token.token_id, token.owner)
