"""ListOffsets: the first, the last, or the first offset at or after a timestamp.

v2 isolation level (KIP-98), v4 leader epochs (KIP-320), v6 flexible, v7 max timestamp (KIP-734),
v8 earliest local (KIP-405), v9 latest tiered (KIP-1005), v10 timeout (KIP-1075), v11 earliest
pending upload (KIP-1023).

The ends of a log are known. A search by timestamp reads files, and decompresses and walks a whole
batch in the end, so all searches of a request are done one after the other in a thread.

Source: Kafka's ListOffsetsHandler, Partition.fetchOffsetForTimestamp, UnifiedLog.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.api.registry import Request, handles
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.log_read import DetachedLog

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.cluster.partition import Partition
    from wirebroker.storage.segment import TimestampedOffset

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# The version from which each special timestamp is understood.
_FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

_LEADER_EPOCH_VERSION = 4
_CONSUMER_REPLICA_ID = -1
_READ_COMMITTED = 1


class _Found(NamedTuple):
    """What is answered; the defaults if there is no such record."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class _Search(NamedTuple):
    """A search by timestamp: it reads files, so a thread does it."""

    partition: Partition
    log: DetachedLog
    timestamp: int
    # Records at or above it are not shown.
    end: int
    answer: dict[str, Any]


@handles(ApiKey.LIST_OFFSETS)
async def list_offsets(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Look up one offset per partition."""
    times_asked = Counter(
        (topic.name, partition.partition_index)
        for topic in body.topics
        for partition in topic.partitions
    )
    slices = Slices(broker.clock)
    topics: list[dict[str, Any]] = []
    searches: list[_Search] = []
    for topic in body.topics:
        partitions, missing = broker.replicas.find(topic.name, b"", by_id=False)
        answers: list[dict[str, Any]] = []
        for asked in topic.partitions:
            answer: dict[str, Any] = {"partition_index": asked.partition_index}
            times = times_asked.pop((topic.name, asked.partition_index), 0)
            if times == 0:
                continue  # asked for several times, which was answered once
            answers.append(answer)
            try:
                if times > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)  # noqa: TRY301 - likewise
                _check_timestamp(asked.timestamp, request.version)
                partition = partitions.get(asked.partition_index)
                if partition is None:
                    raise KafkaError(missing)  # noqa: TRY301 - one place turns errors into codes
                found = _look_up(partition, asked, body)
            except KafkaError as error:
                answer["error_code"] = error.code
            else:
                if isinstance(found, int):
                    log = DetachedLog.of(partition.log)
                    searches.append(_Search(partition, log, asked.timestamp, found, answer))
                else:
                    _fill(answer, found, request.version)
            await slices.turn()
        topics.append({"name": topic.name, "partitions": answers})
    if searches:
        await _search(broker, searches, request.version)
    return {"topics": topics}


def _check_timestamp(timestamp: int, version: int) -> None:
    if timestamp < 0 and version < _FIRST_VERSION.get(timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _look_up(partition: Partition, asked: Any, body: Any) -> _Found | int:
    """Return what is known at once, or up to which offset there is to be searched."""
    timestamp: int = asked.timestamp
    partition.check_leader(asked.current_leader_epoch)
    log = partition.log
    if body.replica_id != _CONSUMER_REPLICA_ID:
        end = log.log_end_offset
    elif body.isolation_level == _READ_COMMITTED:
        end = log.last_stable_offset
    else:
        end = log.high_watermark
    if timestamp == LATEST:
        return _Found(-1, end, partition.leader_epoch)
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        # Nothing is tiered.
        return _Found()
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return _Found(-1, *partition.earliest())
    return end


async def _search(broker: Broker, searches: list[_Search], version: int) -> None:
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(None, lambda: [_find(each) for each in searches])
    for search in searches:
        search.log.note_learned()
    for search, hit in zip(searches, found, strict=True):
        if isinstance(hit, FileNotFoundError) and not search.partition.is_retired:
            hit = await _find_again(search)  # noqa: PLW2901 - what counts is found now
        if isinstance(hit, OSError):
            try:
                # A deletion moves the files away under the search.
                search.partition.check_leader()
            except KafkaError as error:
                search.answer["error_code"] = error.code
            else:
                broker.replicas.disk_failed(search.partition, hit)
                search.answer["error_code"] = ErrorCode.KAFKA_STORAGE_ERROR
        elif isinstance(hit, KafkaError):
            search.answer["error_code"] = hit.code
        elif hit is not None:
            _fill(search.answer, _Found(hit.timestamp, hit.offset, hit.leader_epoch), version)


async def _find_again(search: _Search) -> TimestampedOffset | KafkaError | OSError | None:
    """Search what is there if retention or compaction has removed segments under the search."""
    again = search._replace(log=DetachedLog.of(search.partition.log))
    return await asyncio.get_running_loop().run_in_executor(None, _find, again)


def _find(search: _Search) -> TimestampedOffset | KafkaError | OSError | None:
    log = search.log
    try:
        if search.timestamp == MAX_TIMESTAMP:
            return log.offset_of_max_timestamp(up_to_offset=search.end)
        return log.offset_for_timestamp(search.timestamp, up_to_offset=search.end)
    except (KafkaError, OSError) as error:
        return error


def _fill(answer: dict[str, Any], found: _Found, version: int) -> None:
    answer["timestamp"] = found.timestamp
    answer["offset"] = found.offset
    if version >= _LEADER_EPOCH_VERSION:
        answer["leader_epoch"] = found.leader_epoch
