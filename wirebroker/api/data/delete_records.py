"""DeleteRecords: deletes all records below an offset, one per partition.

It only moves the log start offset; retention deletes the segments below. The offset is checkpointed
before the response, so that deleted records do not return after a crash (Apache Kafka writes it
within a minute).

The response waits for live followers, so that no later leader has the records. After a timeout it
has the low watermark that all have reached.

Source: Kafka's KafkaApis.handleDeleteRecordsRequest, Partition.deleteRecordsOnLeader and
DelayedDeleteRecords (KIP-107).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.data.absent_partitions import missing_partition_error
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DELETE_TOPIC
from wirebroker.coordinator.controller.image.topic_names import is_internal
from wirebroker.disks.data_directory import Checkpoint
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.disks.data_directory import DataDirectory
    from wirebroker.replica.partition import Partition
    from wirebroker.request.request import Request

_HIGH_WATERMARK: Final = -1
_NO_LOW_WATERMARK: Final = -1
_LONGEST_WAIT_S: Final = 120.0


@handles(ApiKey.DELETE_RECORDS, permissions=(DELETE_TOPIC,), cost=Cost.WAITS)
async def delete_records(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Move log start offsets."""
    del request
    slices = Slices(broker.clock)
    # For a repeated partition, the last offset wins.
    offsets: dict[str, dict[int, int]] = {}
    for topic in body.topics:
        by_index = offsets[topic.name] = {}
        for requested in topic.partitions:
            by_index[requested.partition_index] = requested.offset
            await slices.turn()
        await slices.turn()
    moved: dict[DataDirectory, list[dict[str, Any]]] = {}
    deleted: list[tuple[Partition, dict[str, Any]]] = []
    topics: list[dict[str, Any]] = []
    for name, by_index in offsets.items():
        partitions, missing = broker.replicas.find(name, b"", by_id=False)
        answers: list[dict[str, Any]] = []
        for index, offset in by_index.items():
            answer: dict[str, Any] = {"partition_index": index}
            answers.append(answer)
            partition = partitions.get(index)
            try:
                if partition is None:
                    absent = missing_partition_error(broker, missing, index, name=name)
                    raise KafkaError(absent)  # noqa: TRY301 - one place turns errors into codes
                await partition.until_settled()
                start_before = partition.log.log_start_offset
                answer["low_watermark"] = low_watermark = _delete(partition, offset)
                deleted.append((partition, answer))
                if low_watermark != start_before:
                    moved.setdefault(partition.directory, []).append(answer)
            except KafkaError as error:
                _refuse(answer, error.code)
            await slices.turn()
        topics.append({"name": name, "partitions": answers})
        await slices.turn()
    for directory, answers in moved.items():
        await _write_log_start_offsets(broker, directory, answers)
    await _wait_for_followers(deleted, max(0.0, min(body.timeout_ms / 1000, _LONGEST_WAIT_S)))
    return {"topics": topics}


def _delete(partition: Partition, offset: int) -> int:
    if is_internal(partition.topic):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition.check_leader()
    log = partition.log
    if log.settings.is_compacted and not log.settings.is_deleted_by_retention:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    if offset == _HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    log.increment_log_start_offset(offset)
    return log.log_start_offset


async def _wait_for_followers(
    deleted: list[tuple[Partition, dict[str, Any]]], timeout_s: float
) -> None:
    deadline = asyncio.get_running_loop().time() + timeout_s
    for partition, answer in deleted:
        leading = partition.leading
        if answer.get("error_code") or (leading is not None and leading.is_alone):
            continue
        try:
            async with asyncio.timeout_at(deadline):
                await partition.until_deleted(answer["low_watermark"])
        except TimeoutError:
            if partition.leading is None:
                _refuse(answer, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                answer["error_code"] = ErrorCode.REQUEST_TIMED_OUT
                answer["low_watermark"] = partition.low_watermark
        except KafkaError as error:
            _refuse(answer, error.code)


async def _write_log_start_offsets(
    broker: Broker, directory: DataDirectory, answers: list[dict[str, Any]]
) -> None:
    try:
        await directory.checkpoint(broker.clock, Checkpoint.LOG_START_OFFSETS)
        directory.check_online()
    except OSError as error:
        broker.replicas.write_failed(directory, error)
        code = ErrorCode.KAFKA_STORAGE_ERROR
    except KafkaError as error:
        code = error.code
    else:
        return
    for answer in answers:
        _refuse(answer, code)


def _refuse(answer: dict[str, Any], code: ErrorCode) -> None:
    answer["low_watermark"] = _NO_LOW_WATERMARK
    answer["error_code"] = code
