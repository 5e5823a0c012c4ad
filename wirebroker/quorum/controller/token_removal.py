"""Delegation tokens that have expired are removed, every hour: the controller's own duty.

Nobody logs in by an expired one; what is removed is what would stand in the metadata for ever.

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

# A loop's timers go no further.
_LONGEST_PAUSE_S: Final = 86_400.0


class TokenRemoval:
    """Runs until it is stopped; does nothing where there are no tokens."""

    __slots__ = ("_controller", "_task")

    def __init__(self, controller: QuorumController) -> None:
        self._controller = controller
        config = controller.rules.config
        self._task: asyncio.Task[None] | None = None
        if has_tokens(config):
            interval_s = config.int("delegation.token.expiry.check.interval.ms") / 1000
            self._task = asyncio.create_task(self._run(interval_s), name="remove expired tokens")

    async def stop(self) -> None:
        """Remove no more; what was submitted is finished by the controller."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, interval_s: float) -> None:
        while True:
            await pause(min(interval_s, _LONGEST_PAUSE_S))
            await self.remove()

    async def remove(self) -> None:
        """Remove what has expired by now."""
        try:
            removed = await self._controller.submit(remove_expired)
        except KafkaError as error:
            LOGGER.warning("expired delegation tokens stay for now: %s", error)
            return
        for token in removed:
            LOGGER.info("delegation token %s of %s has expired", token.token_id, token.owner)
