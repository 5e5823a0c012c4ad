"""DescribeLogDirs and AlterReplicaLogDirs: what lies in which of `log.dirs`, and how much.

DescribeLogDirs v1, v2 flexible, v3 a top-level error, v4 the size of the volume (KIP-827), v5
whether the directory is cordoned. A log is not moved between directories: AlterReplicaLogDirs (v1,
v2 flexible) accepts the directory where it lies already.

Source: Kafka's ReplicaManager.describeLogDirs and alterReplicaLogDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.broker import Broker
    from wirebroker.cluster.data_directory import DataDirectory


@handles(ApiKey.DESCRIBE_LOG_DIRS)
async def describe_log_dirs(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe every directory, with those of its partitions that were asked for."""
    del request
    wanted: dict[str, set[int]] | None = None
    if body.topics is not None:
        wanted = {}
        for topic in body.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    slices = Slices(broker.clock)
    directories = tuple(broker.replicas.directories)
    return {"results": [await _describe(each, wanted, slices) for each in directories]}


async def _describe(
    directory: DataDirectory, wanted: Mapping[str, set[int]] | None, slices: Slices
) -> dict[str, Any]:
    if not directory.is_online:
        return {
            "error_code": int(ErrorCode.KAFKA_STORAGE_ERROR),
            "log_dir": directory.path,
            "topics": [],
        }
    topics: dict[str, list[dict[str, Any]]] = {}
    for partition in tuple(directory.partitions):
        await slices.turn()
        if wanted is None or partition.index in wanted.get(partition.topic, ()):
            topics.setdefault(partition.topic, []).append(
                {
                    "partition_index": partition.index,
                    "partition_size": partition.log.size_bytes,
                    "offset_lag": 0,
                    "is_future_key": False,
                }
            )
    return {
        "log_dir": directory.path,
        "topics": [{"name": name, "partitions": each} for name, each in topics.items()],
        "total_bytes": directory.files.total_bytes(),
        "usable_bytes": directory.files.free_bytes(),
    }


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS)
def alter_replica_log_dirs(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Judge each partition by itself."""
    del request
    results: dict[str, list[dict[str, Any]]] = {}
    for target in body.dirs:
        for topic in target.topics:
            results.setdefault(topic.name, []).extend(
                {
                    "partition_index": index,
                    "error_code": int(_move(broker, target.path, topic.name, index)),
                }
                for index in topic.partitions
            )
    return {
        "results": [
            {"topic_name": name, "partitions": partitions} for name, partitions in results.items()
        ]
    }


def _move(broker: Broker, path: str, topic: str, index: int) -> ErrorCode:
    directory = next((each for each in broker.replicas.directories if each.path == path), None)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not directory.is_online:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partitions, _ = broker.replicas.find(topic, ZERO_UUID, by_id=False)
    partition = partitions.get(index)
    if partition is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE if partition.directory is directory else ErrorCode.KAFKA_STORAGE_ERROR
