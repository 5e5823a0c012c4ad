"""Fetch: records as slices of segment files (hot path; see DESIGN "One Fetch").

v4-12 name topics, v13 gives ids; v7 sessions (KIP-227); v9 leader epochs (KIP-320); v12 flexible
and diverging epochs (KIP-595); v15 replica state (KIP-903); v16 leader endpoints (KIP-951); v17
replica directory (KIP-853); v18 high watermark (KIP-1166).

An answer that would hold fewer than min_bytes waits until enough is committed, max_wait_ms have
passed or something is wrong; each advance of one of its partitions makes it look again.

Source: Kafka's KafkaApis.handleFetchRequest, ReplicaManager.readFromLog, DelayedFetch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wirebroker.api.fetch_sessions import (
    TOPIC_ID_VERSION,
    FetchContext,
    Results,
    SessionPartition,
)
from wirebroker.api.registry import Reply, Request, handles_raw
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.fetch import FetchRequest, parse_fetch
from wirebroker.codecs.fetch_response import FetchPartitionResult, encode_fetch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from wirebroker.broker import Broker
    from wirebroker.cluster.partition import Partition

CONSUMER_REPLICA_ID = -1
READ_COMMITTED = 1
# From this version on, clients know KAFKA_STORAGE_ERROR (KIP-112).
STORAGE_ERROR_VERSION = 6
# From this version on, clients can read zstd (KIP-110).
ZSTD_VERSION = 10

# More partitions than this are looked at in slices: each takes about 4 us.
MANY_PARTITIONS = 1_000


class _Read:
    """One Fetch that is being answered: limits, then results as they stand."""

    __slots__ = ("_broker", "_request", "_version", "context", "failed", "results", "size")

    def __init__(
        self, broker: Broker, request: FetchRequest, context: FetchContext, version: int
    ) -> None:
        self._broker = broker
        self._request = request
        self._version = version
        self.context = context
        self.results: Results = []
        self.size = 0
        self.failed = False

    def look(self) -> None:
        """Read every partition once, within the limits of the whole answer."""
        for _ in self._steps():
            pass

    async def look_in_slices(self) -> None:
        """Do the same without holding the loop."""
        slices = Slices(self._broker.clock)
        for _ in self._steps():
            await slices.turn()

    def _steps(self) -> Iterator[None]:
        results: Results = []
        left = min(self._request.max_bytes, self._broker.config.int("fetch.max.bytes"))
        min_one = True
        self.size = 0
        self.failed = False
        for partition in self.context.partitions:
            try:
                result = self._read(partition, left, min_one=min_one)
            except KafkaError as error:
                self.failed = True
                code = self._code(error.code)
                result = FetchPartitionResult(partition.wanted.index, code, records=b"")
            if result.diverging_epoch is not None:
                self.failed = True
            records = result.records
            if records:
                length = len(records) if isinstance(records, bytes) else records.length
                self.size += length
                left = max(0, left - length)
                min_one = False
            results.append((partition, result))
            yield
        self.results = results

    def is_ready(self) -> bool:
        """Tell whether the answer needs no more waiting."""
        wanted = min(
            self._request.min_bytes,
            self._request.max_bytes,
            self._broker.config.int("fetch.max.bytes"),
        )
        return (
            self.size >= wanted
            or self.failed
            or self._request.max_wait_ms <= 0
            or not self.context.partitions
        )

    def found(self) -> list[Partition]:
        """Return the partitions that this Fetch can wait for."""
        by_id = self._version >= TOPIC_ID_VERSION
        replicas = self._broker.replicas
        known = []
        for asked in self.context.partitions:
            partitions, _ = replicas.find(asked.topic, asked.topic_id, by_id=by_id)
            partition = partitions.get(asked.wanted.index)
            if partition is not None:
                known.append(partition)
        return known

    def _read(self, asked: SessionPartition, left: int, *, min_one: bool) -> FetchPartitionResult:
        wanted = asked.wanted
        partitions, missing = self._broker.replicas.find(
            asked.topic, asked.topic_id, by_id=self._version >= TOPIC_ID_VERSION
        )
        partition = partitions.get(wanted.index)
        if partition is None:
            raise KafkaError(missing)
        partition.check_leader(wanted.current_leader_epoch)
        log = partition.log
        if log.settings.compression_type == "zstd" and self._version < ZSTD_VERSION:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        result = FetchPartitionResult(wanted.index, ErrorCode.NONE)
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        result.log_start_offset = log.log_start_offset
        result.records = b""
        if wanted.last_fetched_epoch >= 0:
            result.diverging_epoch = _divergence(partition, asked)
            if result.diverging_epoch is not None:
                return result
        if self._request.isolation_level == READ_COMMITTED:
            up_to_offset = log.last_stable_offset
            result.aborted_transactions = []
        elif self._request.replica_id == CONSUMER_REPLICA_ID:
            up_to_offset = log.high_watermark
        else:
            up_to_offset = log.log_end_offset
        try:
            read = log.read(
                wanted.fetch_offset,
                min(wanted.max_bytes, left),
                up_to_offset=up_to_offset,
                min_one=min_one,
            )
        except OSError as error:
            self._broker.replicas.disk_failed(partition, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        if read.slice is not None:
            result.records = read.slice
        return result

    def _code(self, code: ErrorCode) -> ErrorCode:
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self._version < STORAGE_ERROR_VERSION:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return code


@handles_raw(ApiKey.FETCH)
def fetch(broker: Broker, request: Request) -> Reply | Awaitable[Reply]:
    """Answer with what is there, or wait for more."""
    version = request.version
    wanted = parse_fetch(request.frame, request.position, version)
    context = broker.fetch_sessions.context(wanted, version, broker.clock.now_ms())
    if context.error != ErrorCode.NONE:
        return encode_fetch(version, error_code=context.error, session_id=0, topics=[])
    read = _Read(broker, wanted, context, version)
    if len(context.partitions) <= MANY_PARTITIONS:
        read.look()
        if read.is_ready():
            return _reply(broker, version, read)
    return _wait(broker, version, read, wanted.max_wait_ms / 1000)


async def _wait(broker: Broker, version: int, read: _Read, seconds: float) -> Reply:
    """Look again at each advance of a partition, until there is enough or time is over."""
    loop = asyncio.get_running_loop()
    is_over = False
    wakening: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        # Many appends in one turn of the loop make one look.
        if not wakening.done():
            wakening.set_result(None)

    def give_up() -> None:
        nonlocal is_over
        is_over = True
        wake()

    is_large = len(read.context.partitions) > MANY_PARTITIONS
    watched = read.found()
    for partition in watched:
        partition.watch(wake)
    timer = loop.call_later(seconds, give_up)
    try:
        while True:
            # Also the first time: records may have come before the partitions were watched.
            if is_large:
                await read.look_in_slices()
            else:
                read.look()
            if is_over or read.is_ready():
                break
            await wakening
            wakening = loop.create_future()
    finally:
        timer.cancel()
        for partition in watched:
            partition.unwatch(wake)
    return _reply(broker, version, read)


def _reply(broker: Broker, version: int, read: _Read) -> Reply:
    context = read.context
    chosen = context.select(read.results, broker.clock.now_ms())
    topics: list[tuple[str, bytes, list[FetchPartitionResult]]] = []
    for asked, result in chosen:
        if topics and topics[-1][0] == asked.topic and topics[-1][1] == asked.topic_id:
            topics[-1][2].append(result)
        else:
            topics.append((asked.topic, asked.topic_id, [result]))
    return encode_fetch(
        version, error_code=context.error, session_id=context.session_id, topics=topics
    )


def _divergence(partition: Partition, asked: SessionPartition) -> tuple[int, int] | None:
    """Return (epoch, end offset) where the fetcher's log leaves ours, None if it doesn't."""
    wanted = asked.wanted
    epoch, end_offset = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
