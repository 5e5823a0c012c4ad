"""The kit's own client."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import SystemClock
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.net.client.settings import Backoff
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from wirebroker.client.errors import ClientError
    from wirebroker.net.client.settings import PeerAddress
    from wirebroker.net.client.transport import Dialer, Receiver, Transport
    from wirebroker.security.login.outgoing import ConnectionMethod

# Requests with this id are neither recorded nor disturbed.
CLIENT_ID: Final = "wirebroker.testing"
_TIMEOUT_S: Final = 20.0
_RETRY: Final = Backoff(first_s=0.005, most_s=0.02)


def internal_client(
    *addresses: PeerAddress, security: ConnectionMethod | None = None
) -> KafkaClient:
    """Return a client of several brokers, or of one that is reached only at its address."""
    dialer = TcpDialer() if security is None else security.dialer
    return KafkaClient(
        addresses,
        timeout_s=_TIMEOUT_S,
        dialer=_OneAddressDialer(addresses[0], dialer) if len(addresses) == 1 else dialer,
        handshake=None if security is None else security.handshake,
        clock=SystemClock(),
        random=random.Random(),  # noqa: S311 - pauses, no secrets
        client_id=CLIENT_ID,
        retry=_RETRY,
    )


def as_kafka_error(error: ClientError) -> Exception:
    """Return KafkaError for a broker's error code, else ConnectionError."""
    if error.code:
        return KafkaError(ErrorCode(error.code), str(error))
    return ConnectionError(str(error))


class _OneAddressDialer:
    """A dialer that ignores the advertised address."""

    __slots__ = ("_address", "_dialer")

    def __init__(self, address: PeerAddress, dialer: Dialer) -> None:
        self._address = address
        self._dialer = dialer

    async def dial(self, host: str, port: int, receiver: Receiver) -> Transport:
        del host, port
        return await self._dialer.dial(self._address.host, self._address.port, receiver)
