"""Logs one line when the quorum has had no working leader for longer than an election takes.

The line has the controllers' addresses and states; another line follows when there is a leader
again.
Without a leader nothing can be created or altered, but brokers serve what they have.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.quorum.raft.raft_channel import RaftTransport
    from wirebroker.quorum.raft.raft_node import RaftNode

LOGGER = logging.getLogger(__name__)

_INTERVAL_S: Final = 1.0
# Two elections with Kafka's default timeouts.
_PATIENCE_S: Final = 8.0


class LeaderWatch:
    """The watch of one replica.

    Attributes:
        describe: Returns the controllers with their addresses and states.
    """

    __slots__ = ("_clock", "_node", "_task", "describe")

    def __init__(self, node: RaftNode, describe: Callable[[], str], clock: Clock) -> None:
        self._node = node
        self.describe = describe
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
                    self.describe(),
                )


def voter_states(node: RaftNode, transport: RaftTransport, listener_name: str) -> str:
    """Return the voters, of which `node` is one, with their addresses and states."""

    def state_of(voter_id: int) -> str:
        destination = node.voters.destination(voter_id, listener_name)
        address = "" if destination is None else f" at {destination.host}:{destination.port}"
        if voter_id == node.key.replica_id:
            return f"{voter_id}{address} (this node, {node.state_name})"
        return f"{voter_id}{address} ({transport.outcome(voter_id)})"

    return "; ".join(map(state_of, sorted(node.voters.ids)))


def server_states(servers: Iterable[Destination], transport: RaftTransport) -> str:
    """Return servers with the outcomes of the last requests to them."""
    return "; ".join(
        f"{server.host}:{server.port} ({transport.outcome(server.node_id)})" for server in servers
    )
