"""How our connections behave; the defaults are those of Kafka's clients and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from random import Random


class PeerAddress(NamedTuple):
    """Where a peer listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Backoff(NamedTuple):
    """How long to wait after failures in a row: exponential, with jitter (KIP-580).

    Attributes:
        first_s: After the first failure; it doubles with each (reconnect.backoff.ms).
        most_s: Never longer, jitter apart (reconnect.backoff.max.ms).
        jitter: By which part of itself a delay is shortened or lengthened, 0 to 1, so that those
            who failed together do not come back together.
    """

    first_s: float = 0.05
    most_s: float = 1.0
    jitter: float = 0.2

    def delay_s(self, failures: int, random: Random) -> float:
        """Return how long to wait after so many failures in a row; none: not at all."""
        if failures <= 0:
            return 0.0
        doublings = min(failures - 1, 30)
        plain_s = min(self.first_s * (1 << doublings), self.most_s)
        return plain_s * random.uniform(1 - self.jitter, 1 + self.jitter)


class ClientSettings(NamedTuple):
    """What every connection to a peer keeps to.

    Attributes:
        client_id: What we call ourselves in each request.
        connect_timeout_s: For name, connection, ApiVersions and handshake together
            (socket.connection.setup.timeout.ms).
        request_timeout_s: For a request that names no deadline (request.timeout.ms).
        max_in_flight: Requests that wait for their answers on one connection; the next wait for a
            place (max.in.flight.requests.per.connection).
        max_response_bytes: Longer answers close the connection; nothing is allocated before it
            arrives.
        idle_s: A connection that nobody has used for this long is not used again but replaced:
            the peer is about to close it (connections.max.idle.ms, a minute less than brokers').
        reconnect: The pause between attempts to connect.
    """

    client_id: str = "wirebroker"
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 30.0
    max_in_flight: int = 5
    max_response_bytes: int = 104_857_600
    idle_s: float = 540.0
    reconnect: Backoff = Backoff()
