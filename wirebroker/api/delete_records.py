"""DeleteRecords: everything below an offset is to be gone, one offset for each partition.

Nothing is moved or written but the log's start: retention removes segments that lie below it as a
whole. The new start is in its checkpoint before it is answered, so that a crash does not bring back
what somebody was told is gone; Apache Kafka writes it within a minute.

    version 2    flexible encoding

Offset -1 is the high watermark. Without followers nobody has to be waited for, so the timeout is
never reached.

Source: Kafka's KafkaApis.handleDeleteRecordsRequest, Partition.deleteRecordsOnLeader (KIP-107).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.registry import handles
from wirebroker.clock import Slices
from wirebroker.cluster.data_directory import Checkpoint
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.topic_names import is_internal
from wirebroker.handlers import Cost
from wirebroker.needs import DELETE_TOPIC

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.cluster.data_directory import DataDirectory
    from wirebroker.cluster.partition import Partition
    from wirebroker.request import Request

_HIGH_WATERMARK: Final = -1
_NO_LOW_WATERMARK: Final = -1


@handles(ApiKey.DELETE_RECORDS, needs=(DELETE_TOPIC,), cost=Cost.SLICES)
async def delete_records(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Move the starts of logs."""
    del request
    slices = Slices(broker.clock)
    # A partition that is named twice is answered once, for the offset named last.
    offsets = {
        topic.name: {each.partition_index: each.offset for each in topic.partitions}
        for topic in body.topics
    }
    moved: dict[DataDirectory, list[dict[str, Any]]] = {}
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
                    raise KafkaError(missing)  # noqa: TRY301 - one place turns errors into codes
                await partition.until_settled()
                start_before = partition.log.log_start_offset
                answer["low_watermark"] = low_watermark = _delete(partition, offset)
                if low_watermark != start_before:
                    moved.setdefault(partition.directory, []).append(answer)
            except KafkaError as error:
                _refuse(answer, error.code)
            await slices.turn()
        topics.append({"name": name, "partitions": answers})
    for directory, answers in moved.items():
        await _write_down(broker, directory, answers)
    return {"topics": topics}


def _delete(partition: Partition, offset: int) -> int:
    """Hide what is below `offset`; return the log's start, Kafka's low watermark.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION for an internal topic, POLICY_VIOLATION for one that is
            only compacted, OFFSET_OUT_OF_RANGE above the high watermark.
    """
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


async def _write_down(
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
