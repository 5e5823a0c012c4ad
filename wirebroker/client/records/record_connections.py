"""Connections on which records of a cluster are read, so that their memory is bounded.

Kafka returns the first batch of a response whole, however large it is (KIP-74). So connections for
records accept responses that are slightly longer than the default of message.max.bytes (1 MiB). A
longer response is requested again on another connection, in a *turn*: while holding a lock that the
process has once.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError, TooLongError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from wirebroker.client.kafka_client import KafkaClient

# message.max.bytes is 1 MiB by default; the rest of a response is smaller.
_SMALL_RESPONSE_BYTES: Final = (1 << 20) + (256 << 10)
_PAGES_AT_ONCE: Final = 4


class RecordConnections:
    """The connections for records of one cluster.

    Attributes:
        metadata: A client for all other requests.
        pages: A client for pages of records. A long response closes its connection; other pages on
            it read again.
        pages_at_once: Places for pages that are being read.
    """

    __slots__ = ("_process_turn", "_turn", "metadata", "pages", "pages_at_once")

    def __init__(self, client: KafkaClient, process_turn: asyncio.Lock) -> None:
        """Store the cluster's client, and the lock that all clusters share."""
        self.metadata = client
        self.pages = self.small()
        self.pages_at_once = asyncio.Semaphore(_PAGES_AT_ONCE)
        self._process_turn = process_turn
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for the turn, for the time in which a large batch is in memory.

        Clusters alternate, so that one whose brokers are slow does not delay others by all its
        readers.
        """
        async with self._turn, self._process_turn:
            yield

    def small(self) -> KafkaClient:
        """Return a client with separate connections, which refuses large batches."""
        return self.metadata.apart(max_response_bytes=_SMALL_RESPONSE_BYTES)

    def large(self) -> KafkaClient:
        """Return a client with separate connections, to be used in a turn."""
        return self.metadata.apart()


def too_large(topics: str, error: TooLongError) -> ClientError:
    """Return the error for a batch that does not fit even a large response."""
    return ClientError(
        f"{topics} has a batch that is too large for the console: {error}."
        " `wirebroker consume` reads batches of up to 100 MiB"
    )
