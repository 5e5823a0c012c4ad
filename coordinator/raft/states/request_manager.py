"""Requests in flight: at most one for each node, with a timeout and a pause after a failure.

Source: Kafka's RequestManager.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.coordinator.raft.states.epoch_states import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest

# From here on, ended exchanges are forgotten: an administrator may name any number of new voters.
_MANY_EXCHANGES: Final = 100


class RandomSource(Protocol):
    """Source of the random parts of timeouts."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to `stop` - 1."""
        ...


@dataclass(slots=True)
class _Exchange:
    """A request in flight, or a pause (`request` is None) that ends at `until_ms`."""

    request_id: int
    request: RaftRequest | None
    until_ms: int


class RequestManager:
    """The exchanges of one replica with other nodes."""

    __slots__ = ("_exchanges", "_last_request_id", "_random", "_settings")

    def __init__(self, settings: QuorumSettings, random: RandomSource) -> None:
        self._settings = settings
        self._random = random
        self._exchanges: dict[int, _Exchange] = {}
        self._last_request_id = 0

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Return whether a request may be sent to a node."""
        exchange = self._exchanges.get(node_id)
        return exchange is None or now_ms >= exchange.until_ms

    def ready_at(self, node_id: int, now_ms: int) -> int:
        """Return when a request may be sent."""
        exchange = self._exchanges.get(node_id)
        return now_ms if exchange is None else max(now_ms, exchange.until_ms)

    def is_failing(self, node_id: int, now_ms: int) -> bool:
        """Return whether the last request to a node failed lately or got no response in time."""
        exchange = self._exchanges.get(node_id)
        if exchange is None:
            return False
        has_timed_out = now_ms >= exchange.until_ms
        return has_timed_out if exchange.request is not None else not has_timed_out

    def in_flight_until(self, now_ms: int) -> int | None:
        """Return when the oldest request in flight times out; None without any."""
        deadlines = [
            exchange.until_ms
            for exchange in self._exchanges.values()
            if exchange.request is not None and exchange.until_ms > now_ms
        ]
        return min(deadlines, default=None)

    def sent(self, node_id: int, request: RaftRequest, now_ms: int) -> int:
        """Note a request; return its id."""
        assert self.is_ready(node_id, now_ms), node_id
        if len(self._exchanges) >= _MANY_EXCHANGES:
            self._forget_ended(now_ms)
        self._last_request_id += 1
        deadline_ms = now_ms + self._settings.request_timeout_ms
        self._exchanges[node_id] = _Exchange(self._last_request_id, request, deadline_ms)
        return self._last_request_id

    def expected(self, node_id: int, request_id: int, now_ms: int) -> RaftRequest | None:
        """Return the request of a response; None if it is late or not the last one to that node.

        A late one must not count: since then the log may have grown by another response.
        """
        exchange = self._exchanges.get(node_id)
        is_awaited = exchange is not None and exchange.request_id == request_id
        return exchange.request if exchange and is_awaited and now_ms < exchange.until_ms else None

    def finished(self, node_id: int, request_id: int, *, is_success: bool, now_ms: int) -> None:
        """Note a response; after a failure the node gets no request for a while."""
        if self.expected(node_id, request_id, now_ms) is None:
            return  # The replica changed its state, and expects no response of the former one.
        if is_success:
            del self._exchanges[node_id]
        else:
            until_ms = now_ms + self._settings.retry_backoff_ms
            self._exchanges[node_id] = _Exchange(request_id, None, until_ms)

    def forget(self, node_id: int) -> None:
        """Expect no response of a node any longer."""
        self._exchanges.pop(node_id, None)

    def _forget_ended(self, now_ms: int) -> None:
        """Forget pauses that are over and requests that timed out."""
        self._exchanges = {
            node_id: exchange
            for node_id, exchange in self._exchanges.items()
            if now_ms < exchange.until_ms
        }

    def forget_all(self) -> None:
        """Expect no response of any node."""
        self._exchanges.clear()

    def ready_server(self, servers: Sequence[Destination], now_ms: int) -> Destination | None:
        """Return one of some servers, in random order; none while any request is in flight."""
        if not servers or self.in_flight_until(now_ms) is not None:
            return None
        first = self._random.randrange(len(servers))
        for server in (*servers[first:], *servers[:first]):
            if self.is_ready(server.node_id, now_ms):
                return server
        return None

    def server_ready_at(self, servers: Sequence[Destination], now_ms: int) -> int:
        """Return when `ready_server` may return one of these servers."""
        if not servers:
            return NEVER
        in_flight_until = self.in_flight_until(now_ms)
        if in_flight_until is not None:
            return in_flight_until
        return min(self.ready_at(server.node_id, now_ms) for server in servers)
