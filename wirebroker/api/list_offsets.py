"""ListOffsets: the first, the last, or the first offset at or after a timestamp.

v2 isolation level (KIP-98), v4 leader epochs (KIP-320), v6 flexible, v7 max timestamp (KIP-734),
v8 earliest local (KIP-405), v9 latest tiered (KIP-1005), v10 timeout (KIP-1075), v11 earliest
pending upload (KIP-1023).

Source: Kafka's ListOffsetsHandler, Partition.fetchOffsetForTimestamp, UnifiedLog.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.api.registry import Request, handles
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.cluster.partition import Partition

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

CONSUMER_REPLICA_ID = -1
READ_COMMITTED = 1


class _Found(NamedTuple):
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@handles(ApiKey.LIST_OFFSETS)
async def list_offsets(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Look up one offset per partition."""
    times_asked = Counter(
        (topic.name, partition.partition_index)
        for topic in body.topics
        for partition in topic.partitions
    )
    slices = Slices(broker.clock)
    topics = []
    for topic in body.topics:
        partitions, missing = broker.replicas.find(topic.name, b"", by_id=False)
        answers = []
        for asked in topic.partitions:
            answer: dict[str, Any] = {"partition_index": asked.partition_index}
            try:
                if times_asked[topic.name, asked.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)  # noqa: TRY301 - likewise
                partition = partitions.get(asked.partition_index)
                if partition is None:
                    raise KafkaError(missing)  # noqa: TRY301 - one place turns errors into codes
                found = _look_up(broker, partition, asked, body, request.version)
            except KafkaError as error:
                answer["error_code"] = error.code
                found = _Found()
            answer["timestamp"] = found.timestamp
            answer["offset"] = found.offset
            if request.version >= 4:
                answer["leader_epoch"] = found.leader_epoch
            answers.append(answer)
            await slices.turn()
        topics.append({"name": topic.name, "partitions": answers})
    return {"topics": topics}


def _look_up(broker: Broker, partition: Partition, asked: Any, body: Any, version: int) -> _Found:
    timestamp: int = asked.timestamp
    if timestamp < 0 and version < _FIRST_VERSION.get(timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition.check_leader(asked.current_leader_epoch)
    log = partition.log
    if body.replica_id != CONSUMER_REPLICA_ID:
        end = log.log_end_offset
    elif body.isolation_level == READ_COMMITTED:
        end = log.last_stable_offset
    else:
        end = log.high_watermark
    if timestamp == LATEST:
        return _Found(-1, end, partition.leader_epoch)
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        # Nothing is tiered.
        return _Found()
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        offset, epoch = log.earliest()
        return _Found(-1, offset, -1 if epoch is None else epoch)
    try:
        if timestamp == MAX_TIMESTAMP:
            hit = log.offset_of_max_timestamp(up_to_offset=end)
        else:
            hit = log.offset_for_timestamp(timestamp, up_to_offset=end)
    except OSError as error:
        broker.replicas.disk_failed(partition, error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
    return _Found() if hit is None else _Found(hit.timestamp, hit.offset, hit.leader_epoch)
