"""Fetches records from leaders, large batches on separate connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wirebroker.base.clock import pause
from wirebroker.client.errors import ClientError, TooLongError
from wirebroker.client.records.fetching import FetchLimits, fetch_from
from wirebroker.client.records.record_connections import too_large
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import read_batch_header, whole_batches
from wirebroker.codecs.records.layout import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.records.record_connections import RecordConnections
    from wirebroker.client.topics.leaders import TopicPartition

Rows: TypeAlias = "Sequence[tuple[TopicPartition, Any]]"

# For the responses of all leaders that are read at a time. A first batch may exceed it.
RESPONSE_BYTES: Final = 512 << 10
# How long a leader waits for the records of a range: usually it has them.
_WAIT_MS: Final = 100
RETRY_S: Final = 0.2


class LeaderFetcher:
    """A fetcher with its own connections.

    Attributes:
        metadata: A client for other requests, whose connections no long response closes.
        response_bytes: The requested size of a response; its first batch may exceed it (KIP-74).
    """

    __slots__ = (
        "_failing_since",
        "_is_committed",
        "_small",
        "_wait_ms",
        "metadata",
        "response_bytes",
    )

    def __init__(
        self, connections: RecordConnections, *, is_committed: bool, wait_ms: int | None
    ) -> None:
        """Store how to read; `wait_ms` is how long leaders wait for records, None for a range."""
        self.metadata = connections.metadata
        self._small = connections.small()
        self._is_committed = is_committed
        self._wait_ms = _WAIT_MS if wait_ms is None else wait_ms
        self._failing_since: float | None = None
        self.response_bytes = RESPONSE_BYTES

    def close(self) -> None:
        """Close the connections."""
        self._small.abort()

    async def fetch(self, leader: int, positions: Mapping[TopicPartition, int]) -> Rows | None:
        """Return the rows of a small response; None after a failure that may pass.

        Raises:
            TooLongError: The response is large.
            ClientError: The leader refuses, or does not respond within the client's timeout.
        """
        return await self._fetch(self._small, leader, positions, self._wait_ms)

    async def fetch_large(
        self, client: KafkaClient, leader: int, positions: Mapping[TopicPartition, int]
    ) -> Rows | None:
        """Return the rows of any response, in a turn, without waiting for new records.

        `client` is a large one (`RecordConnections`).

        Raises:
            ClientError: As `fetch`; or the first batch is too large for the console.
        """
        try:
            return await self._fetch(client, leader, positions, 0)
        except TooLongError as error:
            names = ", ".join(sorted({place.topic for place in positions}))
            raise too_large(names, error) from None

    async def _fetch(
        self,
        client: KafkaClient,
        leader: int,
        positions: Mapping[TopicPartition, int],
        wait_ms: int,
    ) -> Rows | None:
        limits = FetchLimits(wait_ms, self.response_bytes, self.response_bytes)
        try:
            rows = await fetch_from(
                client, leader, positions.items(), limits, read_committed=self._is_committed
            )
        except TooLongError:
            raise
        except ClientError as error:
            await self._wait_to_retry(error)
            return None
        self._failing_since = None
        return rows

    async def _wait_to_retry(self, error: ClientError) -> None:
        now = self.metadata.clock.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if error.code or now - self._failing_since >= self.metadata.timeout_s:
            raise error
        await pause(RETRY_S)


def bytes_of(rows: Rows) -> int:
    """Return the bytes of all records."""
    return sum(len(row.records or b"") for _, row in rows)


def end_of(records: memoryview | None) -> int | None:
    """Return the offset after the last whole batch, or None."""
    view = memoryview(records or b"")
    end: int | None = None
    try:
        position, size = 0, whole_batches(view)
        while position + HEADER_BYTES <= size:
            header = read_batch_header(view, position)
            end = header.last_offset + 1
            position += header.size
    except KafkaError:
        return end  # the scan reports it
    return end
