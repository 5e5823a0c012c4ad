"""AlterPartition: the controller validates and records ISR changes of leaders.

Source: Kafka's ReplicationControlManager.alterPartition; KIP-841, KIP-903.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.brokers.broker_registration import check_broker_epoch
from wirebroker.coordinator.controller.image.image_records import merge_partition
from wirebroker.coordinator.controller.partitions.leader_election import ElectionRules
from wirebroker.coordinator.controller.partitions.partition_change import (
    RECOVERED,
    RECOVERING,
    PartitionDraft,
)
from wirebroker.coordinator.controller.requests.operations import declare_of_brokers
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import (
        ClusterImage,
        PartitionImage,
        TopicImage,
    )
    from wirebroker.coordinator.operation import Operation

# Last version without the broker epochs of ISR members.
_LAST_WITHOUT_EPOCHS = 2
_UNKNOWN_EPOCH = -1


def alter_partitions(
    request: Any, image: ClusterImage, config: Config, *, version: int
) -> Operation[dict[str, Any]]:
    """Change ISRs.

    Raises:
        KafkaError: STALE_BROKER_EPOCH, for the whole request.
    """
    if request.topics:  # an empty request is not checked, as in Kafka
        check_broker_epoch(image, request.broker_id, request.broker_epoch)
    rules = ElectionRules(image, config)
    records = RecordsOfRequest()
    topics: list[dict[str, Any]] = []
    for requested_topic in request.topics:
        topic = image.topics_by_id.get(requested_topic.topic_id)
        answers: list[dict[str, Any]] = []
        for requested in requested_topic.partitions:
            isr = _requested_isr(requested, version)
            partition = None if topic is None else topic.partitions.get(requested.partition_index)
            if topic is None:
                answers.append(_failure(requested, ErrorCode.UNKNOWN_TOPIC_ID))
            elif partition is None:
                answers.append(_failure(requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif (error := _judge(request.broker_id, requested, isr, partition, image)) is not None:
                answers.append(_failure(requested, error))
            else:
                answers.append(_change(requested, isr, topic, partition, rules, records))
            yield
        topics.append({"topic_id": requested_topic.topic_id, "partitions": answers})
    yield
    return ControllerResult({"topics": topics}, records.records)


def _requested_isr(requested: Any, version: int) -> list[tuple[int, int]]:
    if version <= _LAST_WITHOUT_EPOCHS:
        return [(broker_id, _UNKNOWN_EPOCH) for broker_id in requested.new_isr]
    return [(state.broker_id, state.broker_epoch) for state in requested.new_isr_with_epochs]


def _judge(  # noqa: PLR0911 - one error each, in Kafka's order
    leader: int,
    requested: Any,
    isr: list[tuple[int, int]],
    partition: PartitionImage,
    image: ClusterImage,
) -> ErrorCode | None:
    if (
        requested.leader_epoch > partition.leader_epoch
        or requested.partition_epoch > partition.partition_epoch
    ):
        return ErrorCode.NOT_CONTROLLER  # another controller is active
    if requested.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if requested.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    ids = [broker_id for broker_id, _ in isr]
    if len(set(ids)) < len(ids) or not {leader} <= set(ids) <= set(partition.replicas):
        return ErrorCode.INVALID_REQUEST
    state = requested.leader_recovery_state
    if state == RECOVERING and (len(ids) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    for broker_id, broker_epoch in isr:
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.is_active or broker_epoch not in {-1, broker.epoch}:
            return ErrorCode.INELIGIBLE_REPLICA
    return None


def _change(  # noqa: PLR0917 - what all partitions of a request share comes last
    requested: Any,
    isr: list[tuple[int, int]],
    topic: TopicImage,
    partition: PartitionImage,
    rules: ElectionRules,
    records: RecordsOfRequest,
) -> dict[str, Any]:
    record = PartitionDraft(
        topic.topic_id,
        partition,
        rules.of(topic.name),
        rules.active.__contains__,
        isr=tuple(broker_id for broker_id, _ in isr),
        recovery_state=requested.leader_recovery_state,
    ).record()
    after = partition
    if record is not None:
        records.add(record)
        after = merge_partition(partition, record.body)
    if after.leader != partition.leader:
        return _failure(requested, ErrorCode.NEW_LEADER_ELECTED)
    return {
        "partition_index": partition.index,
        "leader_id": after.leader,
        "leader_epoch": after.leader_epoch,
        "isr": list(after.isr),
        "leader_recovery_state": after.leader_recovery_state,
        "partition_epoch": after.partition_epoch,
    }


def _failure(requested: Any, error: ErrorCode) -> dict[str, Any]:
    return {"partition_index": requested.partition_index, "error_code": int(error)}


declare_of_brokers(
    ApiKey.ALTER_PARTITION,
    lambda case: alter_partitions(case.body, case.image, case.config, version=case.request.version),
)
