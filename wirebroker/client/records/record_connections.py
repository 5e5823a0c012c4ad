"""Connections on which records of a cluster are read, so that their memory is bounded.

Kafka returns the first batch of a response whole, however large it is (KIP-74). So connections for
records accept responses of little more than the largest batch of a broker with default settings. A
larger one is requested again on another connection, in turn: the whole process reads one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError, TooLongError

if TYPE_CHECKING:
    import asyncio

    from wirebroker.client.kafka_client import KafkaClient

# message.max.bytes is 1 MiB by default; the rest of a response is smaller.
_SMALL_RESPONSE_BYTES: Final = (1 << 20) + (256 << 10)
_LARGE_RESPONSE_BYTES: Final = 48 << 20


class RecordConnections:
    """The connections for records of one cluster.

    Attributes:
        turn: Held while a large batch is in memory; all clusters share it.
        pages: A client for pages of records. A large response breaks its connection, so that other
            pages must read again.
    """

    __slots__ = ("_client", "pages", "turn")

    def __init__(self, client: KafkaClient, turn: asyncio.Lock) -> None:
        self._client = client
        self.turn = turn
        self.pages = self.small()

    def small(self) -> KafkaClient:
        """Return a client with separate connections, which refuses large batches."""
        return self._client.apart(max_response_bytes=_SMALL_RESPONSE_BYTES)

    def large(self) -> KafkaClient:
        """Return a client with separate connections, to be used in turn."""
        return self._client.apart(max_response_bytes=_LARGE_RESPONSE_BYTES)


def too_large(topics: str, error: TooLongError) -> ClientError:
    """Return the error for a batch that does not fit even a large response."""
    return ClientError(
        f"{topics} has a batch that is too large for the console: {error}."
        " `wirebroker consume` reads batches of up to 100 MiB"
    )
