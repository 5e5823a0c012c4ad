"""Fetches parts of single partitions, with what is known of aborted transactions.

Leaders name aborted transactions only to read_committed consumers, who see nothing after the first
open transaction. So a partition is fetched as such a consumer up to there, and then as another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.errors import PASSING, ClientError, TooLongError, check
from wirebroker.client.records.fetching import FetchLimits, fetch_from
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

_LIMITS: Final = FetchLimits(wait_ms=0, bytes=512 << 10, partition_bytes=512 << 10)
_MOVED: Final = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}


class PartitionFetcher:
    """A fetcher of single partitions."""

    __slots__ = ("_client", "_is_committed", "_leaders", "_open")

    def __init__(self, client: KafkaClient, *, is_committed: bool) -> None:
        self._client = client
        self._is_committed = is_committed
        self._leaders: dict[TopicPartition, int] = {}
        # Partitions that are read after the start of an open transaction.
        self._open: set[TopicPartition] = set()

    async def fetch(self, place: TopicPartition, offset: int) -> Any:
        """Return a row of a FetchResponse; without records if the offset does not exist.

        Raises:
            TooLongError: The next batch is larger than the client accepts.
            ClientError: The partition cannot be read.
        """
        row = await self._fetch(place, offset)
        is_at_open = not row.records and row.last_stable_offset <= offset < row.high_watermark
        if is_at_open and not self._is_committed and place not in self._open:
            self._open.add(place)
            row = await self._fetch(place, offset)
        return row

    async def _fetch(self, place: TopicPartition, offset: int) -> Any:
        reason = "its leader is moving"
        async for _ in self._client.tries():
            try:
                row = await self._fetch_once(place, offset)
            except ClientError as error:
                if error.code or isinstance(error, TooLongError):
                    raise
                reason = str(error)  # the leader does not respond: there may be another
            else:
                if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    return row
                if row.error_code not in _MOVED:
                    check(row.error_code, f"{place} cannot be read")
                    return row
            self._leaders.clear()
        raise ClientError(f"{place} cannot be read: {reason}; try again")

    async def _fetch_once(self, place: TopicPartition, offset: int) -> Any:
        if place not in self._leaders:
            self._leaders |= await partitions_of(self._client, [place.topic])
        ((_, row),) = await fetch_from(
            self._client,
            self._leaders[place],
            [(place, offset)],
            _LIMITS,
            read_committed=place not in self._open,
        )
        return row
