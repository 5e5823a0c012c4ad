"""DescribeLogDirs and AlterReplicaLogDirs: the replicas in each of `log.dirs`, with sizes.

DescribeLogDirs v4 volume sizes (KIP-827), v5 cordoned directories. AlterReplicaLogDirs responds
when the moves have started (replication/replica_moves.py); until they end, a replica's copy is
described as a future one.

Source: Kafka's ReplicaManager.describeLogDirs and alterReplicaLogDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wirebroker.api.registry import handles, handles_raw
from wirebroker.base.clock import Slices, collected
from wirebroker.codecs.api_keys import ApiKey, is_flexible
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import encode_response
from wirebroker.codecs.permissions import ALTER_CLUSTER, DESCRIBE_CLUSTER
from wirebroker.codecs.primitives import uvarint
from wirebroker.coordinator.controller.features.feature_control import has_cordoned_directories
from wirebroker.request.body_decoding import decoded
from wirebroker.request.handlers import Cost
from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.request.request import Reply, Request

_Topics: TypeAlias = dict[str, list[dict[str, Any]]]

_HAS_ERROR_CODE: Final = 3
_NO_TAGS: Final = b"\x00"
# Bytes after a result's topics by version: two sizes (v4), cordoned (v5), tags (v2).
_AFTER_TOPICS: Final = {1: 0, 2: 1, 3: 1, 4: 8 + 8 + 1, 5: 8 + 8 + 1 + 1}


@handles_raw(ApiKey.DESCRIBE_LOG_DIRS, permissions=(DESCRIBE_CLUSTER,), cost=Cost.READS)
async def describe_log_dirs(broker: Broker, request: Request) -> Reply:
    """Describe all directories, with the requested partitions."""
    version = request.version
    body = await decoded(request)
    slices = Slices(broker.clock)
    requested: dict[str, set[int]] | None = None
    if body.topics is not None:
        requested = {}
        for topic in body.topics:
            requested.setdefault(topic.topic, set()).update(topic.partitions)
            await slices.turn()
    directories = tuple(broker.replicas.directories)
    before = bytes(4 if version < _HAS_ERROR_CODE else 4 + 2)
    pieces = [before + _count(version, len(directories))]
    has_cordoned = has_cordoned_directories(broker.metadata.image.features)
    for directory in directories:
        topics: _Topics = {}
        result: dict[str, Any] = {"log_dir": directory.path, "topics": []}
        if directory.is_online:
            topics = await _topics(broker, directory, requested, slices)
            result["is_cordoned"] = directory.is_cordoned and has_cordoned
        else:
            request.count_error(ErrorCode.KAFKA_STORAGE_ERROR)
        pieces += await _directory(version, directory, result, topics, slices)
    if is_flexible(request.key, version):
        pieces.append(_NO_TAGS)
    return [b"".join(pieces)]


async def _topics(
    broker: Broker,
    directory: DataDirectory,
    requested: Mapping[str, set[int]] | None,
    slices: Slices,
) -> _Topics:
    topics: _Topics = {}
    current_partitions = [(partition, None, None) for partition in tuple(directory.partitions)]
    for partition, copied, lag in (*current_partitions, *broker.replica_moves.of(directory)):
        await slices.turn()
        if requested is None or partition.index in requested.get(partition.topic, ()):
            topics.setdefault(partition.topic, []).append(
                {
                    "partition_index": partition.index,
                    "partition_size": partition.log.size_bytes if copied is None else copied,
                    "offset_lag": lag or 0,
                    "is_future_key": lag is not None,
                }
            )
    return topics


async def _directory(
    version: int,
    directory: DataDirectory,
    result: dict[str, Any],
    topics: _Topics,
    slices: Slices,
) -> list[bytes]:
    """Encode one result by topics: 10,000 at once would hold the loop for too long."""
    if directory.is_online:
        result["total_bytes"] = directory.files.total_bytes()
        result["usable_bytes"] = directory.files.free_bytes()
    else:
        result["error_code"] = int(ErrorCode.KAFKA_STORAGE_ERROR)
    empty = _result(version, result)
    after = empty[len(empty) - _AFTER_TOPICS[version] :]
    before = empty[: len(empty) - len(after) - len(_count(version, 0))]
    pieces = [before, _count(version, len(topics))]
    for name, partitions in topics.items():
        topic = {"name": name, "partitions": partitions}
        encoded = _result(version, result | {"topics": [topic]})
        pieces.append(encoded[len(before) + len(_count(version, 1)) : len(encoded) - len(after)])
        await slices.turn()
    pieces.append(after)
    return pieces


def _result(version: int, result: Mapping[str, Any]) -> bytes:
    encoded = encode_response(ApiKey.DESCRIBE_LOG_DIRS, version, {"results": [result]})
    before = (4 if version < _HAS_ERROR_CODE else 4 + 2) + len(_count(version, 1))
    after = len(_NO_TAGS) if is_flexible(ApiKey.DESCRIBE_LOG_DIRS, version) else 0
    return encoded[before : len(encoded) - after]


def _count(version: int, count: int) -> bytes:
    if is_flexible(ApiKey.DESCRIBE_LOG_DIRS, version):
        return uvarint(count + 1)
    return count.to_bytes(4, "big")


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, permissions=(ALTER_CLUSTER,), cost=Cost.SLICES)
async def alter_replica_log_dirs(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Start the moves."""
    del request
    slices = Slices(broker.clock)
    results: dict[str, list[dict[str, Any]]] = {}
    for target in body.dirs:
        for topic in target.topics:
            partitions = results.setdefault(topic.name, [])
            for index in topic.partitions:
                error = broker.replica_moves.ask(target.path, topic.name, index)
                partitions.append({"partition_index": index, "error_code": int(error)})
                await slices.turn()
            await slices.turn()
        await slices.turn()
    topic_results = (
        {"topic_name": name, "partitions": partitions} for name, partitions in results.items()
    )
    return LargeResponse(results=await slices.run(collected(topic_results)))
