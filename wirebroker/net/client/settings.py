"""Settings of outgoing connections; the defaults are those of Kafka clients and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from random import Random

# More than fetch.max.bytes of consumers and brokers.
MOST_RESPONSE_BYTES: Final = 104_857_600


class PeerAddress(NamedTuple):
    """The address of a peer."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Backoff(NamedTuple):
    """Delays after successive failures: exponential, with jitter (KIP-580)."""

    first_s: float = 0.05  # reconnect.backoff.ms
    most_s: float = 1.0  # before jitter: reconnect.backoff.max.ms
    jitter: float = 0.2  # relative

    def delay_s(self, failures: int, random: Random) -> float:
        """Return the delay after a number of successive failures."""
        if failures <= 0:
            return 0.0
        doublings = min(failures - 1, 30)
        base_delay_s = min(self.first_s * (1 << doublings), self.most_s)
        return base_delay_s * random.uniform(1 - self.jitter, 1 + self.jitter)


class ClientSettings(NamedTuple):
    """Settings of a connection.

    Attributes:
        connect_timeout_s: For lookup, connection, ApiVersions and handshake together
            (socket.connection.setup.timeout.ms).
        request_timeout_s: Default of a request (request.timeout.ms).
        max_in_flight: Further requests wait (max.in.flight.requests.per.connection).
        max_response_bytes: Longer responses close the connection.
        idle_s: Connections that were idle for longer are replaced, before the peer closes them
            (connections.max.idle.ms).
    """

    client_id: str = "wirebroker"
    connect_timeout_s: float = 10.0
    request_timeout_s: float = 30.0
    max_in_flight: int = 5
    max_response_bytes: int = MOST_RESPONSE_BYTES
    idle_s: float = 540.0
    reconnect: Backoff = Backoff()
