"""Logs one line when the quorum has had no working leader for longer than an election takes.

The line has the voters' addresses and states; another line follows when there is a leader again.
Without a leader nothing can be created or altered, but brokers serve what they have.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.quorum.raft.raft_channel import RaftTransport
    from wirebroker.quorum.raft.raft_node import RaftNode

LOGGER = logging.getLogger(__name__)

_INTERVAL_S: Final = 1.0
# Two elections with Kafka's default timeouts.
_PATIENCE_S: Final = 8.0


class LeaderWatch:
    """The watch of one voter of several."""

    __slots__ = ("_clock", "_listener_name", "_node", "_own_id", "_task", "_transport")

    def __init__(
        self,
        node: RaftNode,
        transport: RaftTransport,
        *,
        own_id: int,
        listener_name: str,
        clock: Clock,
    ) -> None:
        self._node = node
        self._transport = transport
        self._own_id = own_id
        self._listener_name = listener_name
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._task = asyncio.create_task(self._watch(), name="watch the quorum's leader")

    async def stop(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        led_at = self._clock.monotonic()
        is_reported = False
        while not self._node.is_ended:
            await pause(_INTERVAL_S)
            now = self._clock.monotonic()
            if self._node.has_working_leader:
                led_at = now
                if is_reported:
                    is_reported = False
                    LOGGER.warning("the metadata quorum has a leader again")
            elif not is_reported and now - led_at >= _PATIENCE_S:
                is_reported = True
                LOGGER.warning(
                    "the metadata quorum has had no leader for %.0f s, so nothing can be created "
                    "or altered; start a majority of its voters: %s",
                    now - led_at,
                    self.voters(),
                )

    def voters(self) -> str:
        """Return the voters with their addresses and states."""
        return "; ".join(self._state_of(voter_id) for voter_id in sorted(self._node.voters.ids))

    def _state_of(self, voter_id: int) -> str:
        destination = self._node.voters.destination(voter_id, self._listener_name)
        address = "" if destination is None else f" at {destination.host}:{destination.port}"
        if voter_id == self._own_id:
            return f"{voter_id}{address} (this node, {self._node.state_name})"
        return f"{voter_id}{address} ({self._transport.outcome(voter_id)})"
