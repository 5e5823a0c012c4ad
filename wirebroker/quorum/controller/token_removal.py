"""Periodic removal of expired delegation tokens by the controller.

Expired tokens are already unusable; their removal keeps the metadata small.

Source: Kafka's QuorumController (sweepExpiredDelegationTokens).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.security.token_control import has_tokens, remove_expired

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController

LOGGER = logging.getLogger(__name__)

# The limit for event loop timers.
_LONGEST_PAUSE_S: Final = 86_400.0


class TokenRemoval:
    """Runs until it is stopped, if tokens are enabled."""

    __slots__ = ("_controller", "_task")

    def __init__(self, controller: QuorumController) -> None:
        self._controller = controller
        config = controller.rules.config
        self._task: asyncio.Task[None] | None = None
        if has_tokens(config):
            interval_s = config.int("delegation.token.expiry.check.interval.ms") / 1000
            self._task = asyncio.create_task(self._run(interval_s), name="remove expired tokens")

    async def stop(self) -> None:
        """Stop; the controller finishes what was submitted."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, interval_s: float) -> None:
        while True:
            await pause(min(interval_s, _LONGEST_PAUSE_S))
            await self.remove()

    async def remove(self) -> None:
        """Remove the expired tokens."""
        try:
            removed = await self._controller.submit(remove_expired)
        except KafkaError as error:
            LOGGER.warning("cannot remove expired delegation tokens now: %s", error)
            return
        for token in removed:
            LOGGER.info("delegation token %s of %s has expired", token.token_id, token.owner)
