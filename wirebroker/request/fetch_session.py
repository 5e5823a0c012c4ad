"""One incremental fetch session: the partitions of a fetcher, and what it has been sent.

Source: Kafka's IncrementalFetchContext and CachedPartition.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.hot.fetch import FetchPartition  # noqa: TC001 - compiled tuples look for it
from wirebroker.codecs.hot.fetch_response import FetchPartitionResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.base.clock import Steps


class SessionPartition(NamedTuple):
    """A requested partition: by name, or by id and its name."""

    topic: str
    topic_id: bytes
    wanted: FetchPartition


PartitionKey = tuple[str | bytes, int]
Results = list[tuple[SessionPartition, FetchPartitionResult]]


class _Cached:
    """A partition's last request and sent state."""

    __slots__ = ("asked", "high_watermark", "log_start_offset")

    def __init__(self, requested: SessionPartition) -> None:
        self.asked = requested
        self.high_watermark: int = -1
        self.log_start_offset: int = -1

    def must_send(self, result: FetchPartitionResult) -> bool:
        """Return whether `result` is news, and remember it."""
        news = (
            records_length(result) > 0
            or result.high_watermark != self.high_watermark
            or result.log_start_offset != self.log_start_offset
            or result.error_code != ErrorCode.NONE
            or result.diverging_epoch is not None
            or result.preferred_read_replica != -1
        )
        # -1: the next result is sent after an error, and after a divergence, whose high watermark
        # a follower ignores.
        is_well = result.error_code == ErrorCode.NONE and result.diverging_epoch is None
        self.high_watermark = result.high_watermark if is_well else -1
        self.log_start_offset = result.log_start_offset
        return news


class Connected(Protocol):
    """A session's connection."""

    @property
    def has_ended(self) -> bool:
        """Whether the connection has ended."""
        ...


class FetchSession:
    """One fetcher's partitions, in the order of service."""

    __slots__ = (
        "created_ms",
        "epoch",
        "is_of_replica",
        "last_used_ms",
        "owner",
        "partitions",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        now_ms: int,
        owner: Connected | None,
        *,
        uses_topic_ids: bool,
        is_of_replica: bool = False,
    ) -> None:
        self.session_id = session_id
        self.is_of_replica = is_of_replica
        self.owner = owner
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.uses_topic_ids = uses_topic_ids
        self.partitions: OrderedDict[PartitionKey, _Cached] = OrderedDict()

    def count_new(self, requested: Iterable[SessionPartition]) -> int:
        """Return how many partitions a request would add."""
        return sum(self._key(partition) not in self.partitions for partition in requested)

    @property
    def has_ended_owner(self) -> bool:
        """Whether the connection that used it last has ended."""
        return self.owner is not None and self.owner.has_ended

    def update(
        self, requested: Iterable[SessionPartition], forgotten: Iterable[PartitionKey]
    ) -> Steps[None]:
        """Apply one request's changes."""
        for partition in requested:
            key = self._key(partition)
            cached = self.partitions.get(key)
            if cached is None:
                self.partitions[key] = _Cached(partition)
            else:
                # Requests by id have no name: keep the known one.
                name = partition.topic or cached.asked.topic
                cached.asked = SessionPartition(name, partition.topic_id, partition.wanted)
            yield
        for key in forgotten:
            self.partitions.pop(key, None)
            yield

    def remember(self, results: Results) -> Steps[None]:
        """Fill a new session from its first response."""
        for partition, result in results:
            cached = self.partitions[self._key(partition)] = _Cached(partition)
            cached.must_send(result)
            yield

    def select(self, results: Results, news: Results) -> Steps[None]:
        """Add results with news; requeue partitions with records, so that none starves."""
        for partition, result in results:
            key = self._key(partition)
            cached = self.partitions.get(key)
            if cached is not None and not cached.asked.topic:
                cached.asked = partition
            if cached is not None and cached.must_send(result):
                news.append((partition, result))
                if records_length(result) > 0:
                    self.partitions.move_to_end(key)
            yield

    def _key(self, partition: SessionPartition) -> PartitionKey:
        name = partition.topic_id if self.uses_topic_ids else partition.topic
        return (name, partition.wanted.index)


def records_length(result: FetchPartitionResult) -> int:
    """Return the bytes of a result's records."""
    records = result.records
    if records is None:
        return 0
    return len(records) if isinstance(records, bytes) else records.length
