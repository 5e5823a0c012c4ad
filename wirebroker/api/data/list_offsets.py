"""ListOffsets: the first, the last, or the first offset at or after a timestamp.

v2 isolation level (KIP-98), v7 max timestamp (KIP-734), v8 earliest local (KIP-405), v9 latest
tiered (KIP-1005), v11 earliest pending upload (KIP-1023).

A search by timestamp reads indexes, headers and one batch. Short searches in warm pages run
immediately; others run in a thread.

Source: Kafka's ListOffsetsHandler, Partition.fetchOffsetForTimestamp, UnifiedLog; KIP-320,
KIP-1075.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.api.data.absent_partitions import missing_partition_error
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices, finish
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_TOPIC
from wirebroker.codecs.special_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from wirebroker.replica.offset_search import search_in_thread
from wirebroker.replica.replica_role import UNKNOWN_EPOCH
from wirebroker.request.handlers import Cost
from wirebroker.storage.files import ColdPagesError
from wirebroker.storage.log.search_by_time import find_quickly, note_searched
from wirebroker.storage.long_work import TakesLongError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Request
    from wirebroker.storage.log.time_search import TimestampedOffset

# First version of each special timestamp.
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
# Tools that compare replicas (kafka-replica-verification).
_DEBUGGING_REPLICA_ID = -2
_READ_COMMITTED = 1

# More partitions are looked up in slices: each takes about 10 us.
_AT_ONCE = 100

_KNOWS_OFFSET_NOT_AVAILABLE = 5


class _ListedOffset(NamedTuple):
    """A result; the defaults mean no such record."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class _Search(NamedTuple):
    partition: Partition
    timestamp: int
    # Records from here on are not visible.
    end: int
    answer: dict[str, Any]
    replica_id: int


@handles(ApiKey.LIST_OFFSETS, permissions=(DESCRIBE_TOPIC,), cost=Cost.THREADS)
def list_offsets(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Look up one offset per partition."""
    answer = _Answer(broker, request, body)
    topics = body.topics
    if len(topics) > _AT_ONCE or sum(len(topic.partitions) for topic in topics) > _AT_ONCE:
        return answer.answer_in_slices()
    finish(answer.steps())
    return answer.searched() if answer.searches else answer.response


class _Answer:
    """One request's immediate results, then its searches."""

    __slots__ = ("_body", "_broker", "_version", "response", "searches")

    def __init__(self, broker: Broker, request: Request, body: Any) -> None:
        self._broker = broker
        self._version = request.version
        self._body = body
        self.response: dict[str, Any] = {"topics": []}
        self.searches: list[_Search] = []

    async def answer_in_slices(self) -> Mapping[str, Any]:
        await Slices(self._broker.clock).run(self.steps())
        return await self.searched()

    async def searched(self) -> Mapping[str, Any]:
        for search in self.searches:
            await _search(self._broker, search, self._version)
        return self.response

    def steps(self) -> Steps[None]:
        counts: dict[tuple[str, int], int] = {}
        for topic in self._body.topics:
            for partition in topic.partitions:
                key = (topic.name, partition.partition_index)
                counts[key] = counts.get(key, 0) + 1
                yield
            yield
        for topic in self._body.topics:
            partitions, missing = self._broker.replicas.find(topic.name, b"", by_id=False)
            answers: list[dict[str, Any]] = []
            self.response["topics"].append({"name": topic.name, "partitions": answers})
            for requested in topic.partitions:
                answer: dict[str, Any] = {"partition_index": requested.partition_index}
                count = counts.pop((topic.name, requested.partition_index), 0)
                if count == 0:
                    yield
                    continue  # a repetition, already in the response
                answers.append(answer)
                try:
                    if count > 1:
                        raise KafkaError(ErrorCode.INVALID_REQUEST)  # noqa: TRY301 - likewise
                    _check_timestamp(requested.timestamp, self._version)
                    partition = partitions.get(requested.partition_index)
                    if partition is None:
                        index = requested.partition_index
                        absent = missing_partition_error(
                            self._broker, missing, index, name=topic.name
                        )
                        raise KafkaError(absent)  # noqa: TRY301 - one place makes codes of errors
                    result = self._look_up(partition, requested, answer)
                except KafkaError as error:
                    answer["error_code"] = error.code
                else:
                    _fill(answer, result, self._version)
                yield
            yield

    def _look_up(
        self, partition: Partition, requested: Any, answer: dict[str, Any]
    ) -> _ListedOffset:
        result = _look_up(partition, requested, self._body, self._version)
        if not isinstance(result, int):
            return result
        search = _Search(partition, requested.timestamp, result, answer, self._body.replica_id)
        try:
            match = _find_at_once(search)
        except (TakesLongError, ColdPagesError, OSError):
            self.searches.append(search)  # a failing disk fails again
            return _ListedOffset()
        if match is None:
            _check_end(partition, self._body.replica_id, self._version)
            return _ListedOffset()
        return _ListedOffset(match.timestamp, match.offset, match.leader_epoch)


def _check_timestamp(timestamp: int, version: int) -> None:
    if timestamp < 0 and version < _FIRST_VERSION.get(timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _check_end(partition: Partition, replica_id: int, version: int) -> None:
    """Refuse to return an end offset that may be below records that consumers have read.

    A new leader does not know the high watermark yet (KIP-207).
    """
    if replica_id == _CONSUMER_REPLICA_ID and partition.is_catching_up:
        late = version < _KNOWS_OFFSET_NOT_AVAILABLE
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE if late else ErrorCode.OFFSET_NOT_AVAILABLE)


def _check_serves(partition: Partition, replica_id: int, epoch: int = UNKNOWN_EPOCH) -> None:
    if replica_id == _DEBUGGING_REPLICA_ID:
        partition.check_readable(epoch)
    else:
        partition.check_leader(epoch)


def _look_up(partition: Partition, requested: Any, body: Any, version: int) -> _ListedOffset | int:
    """Return an immediate result, or the end offset of a search."""
    timestamp: int = requested.timestamp
    _check_serves(partition, body.replica_id, requested.current_leader_epoch)
    log = partition.log
    if body.replica_id != _CONSUMER_REPLICA_ID:
        end = log.log_end_offset
    elif body.isolation_level == _READ_COMMITTED:
        end = log.last_stable_offset
    else:
        end = log.high_watermark
    if timestamp == LATEST:
        _check_end(partition, body.replica_id, version)
        return _ListedOffset(-1, end, partition.leader_epoch)
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        # There is no tiered storage.
        return _ListedOffset()
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return _ListedOffset(-1, *partition.earliest())
    return end


async def _search(broker: Broker, search: _Search, version: int) -> None:
    partition = search.partition
    try:
        match = await search_in_thread(
            partition, search.timestamp, up_to_offset=search.end, clock=broker.clock
        )
    except (KafkaError, OSError) as fault:
        search.answer["error_code"] = _code_of(broker, search, fault)
        return
    try:
        # A new leader may have other records.
        _check_serves(partition, search.replica_id)
        if match is None:
            _check_end(partition, search.replica_id, version)
    except KafkaError as error:
        search.answer["error_code"] = error.code
        return
    if match is not None:
        note_searched(partition.log, match.offset)
        found = _ListedOffset(match.timestamp, match.offset, match.leader_epoch)
        _fill(search.answer, found, version)


def _code_of(broker: Broker, search: _Search, fault: KafkaError | OSError) -> ErrorCode:
    """Return the code for a failed search."""
    try:
        # The files may have been truncated, or moved for deletion.
        _check_serves(search.partition, search.replica_id)
    except KafkaError as error:
        return error.code
    if isinstance(fault, KafkaError):
        return fault.code
    broker.replicas.disk_failed(search.partition, fault)
    return ErrorCode.KAFKA_STORAGE_ERROR


def _find_at_once(search: _Search) -> TimestampedOffset | None:
    if search.timestamp == MAX_TIMESTAMP:
        raise TakesLongError
    return find_quickly(search.partition.log, search.timestamp, up_to_offset=search.end)


def _fill(answer: dict[str, Any], result: _ListedOffset, version: int) -> None:
    answer["timestamp"] = result.timestamp
    answer["offset"] = result.offset
    if version >= _LEADER_EPOCH_VERSION:
        answer["leader_epoch"] = result.leader_epoch
