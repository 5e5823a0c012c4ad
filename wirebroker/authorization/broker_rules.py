"""Rules of requests that brokers serve; those for topics, configs and the cluster.

Produce, Fetch, ShareFetch, ShareAcknowledge, Metadata, DescribeConfigs, DescribeTopicPartitions and
DescribeDelegationToken check in their handlers, since the decisions determine what is read.

Source: Kafka's KafkaApis, ConfigHelper; the error responses of its request classes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.authorization import (
    group_rules,
    share_group_rules,
    share_state_rules,
    transaction_rules,
)
from wirebroker.authorization.ruling import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    MESSAGES,
    SERVED,
    STEP,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
    CheckedRequest,
    Fields,
    Ruling,
    adding,
    cluster_operations,
    failed_topics,
    indexes_of,
    kept,
    named,
    of_cluster,
    split,
    with_field,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.permissions import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    READ_TOPIC,
)
from wirebroker.coordinator.controller.image.topic_names import check_topic_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.authorization.ruling import Rule
    from wirebroker.base.clock import Steps


_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_FIRST_FINDING_SEVERAL: Final = 4
_DENIED: Final = {"error_code": int(TOPIC_DENIED)}
_NOT_REQUESTED: Final = -(1 << 31)


def list_offsets(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each topic."""
    body = request.body
    body.topics, denied_topics = yield from split(
        request.access, DESCRIBE_TOPIC, body.topics, _name
    )
    failures = yield from failed_topics(denied_topics, named, indexes_of, _DENIED)
    return adding("topics", failures)


def leader_epochs(request: CheckedRequest) -> Steps[Ruling]:
    """Require CLUSTER_ACTION, or DESCRIBE of each topic."""
    access, body = request.access, request.body
    if access.may(CLUSTER_ACTION, logs_denied=False):
        return SERVED
    body.topics, denied_topics = yield from split(
        access, DESCRIBE_TOPIC, body.topics, lambda topic: str(topic.topic)
    )
    failures = yield from failed_topics(
        denied_topics,
        lambda topic: {"topic": topic.topic},
        lambda topic: (partition.partition for partition in topic.partitions),
        _DENIED,
        index_field="partition",
    )
    return adding("topics", failures)


def delete_records(request: CheckedRequest) -> Steps[Ruling]:
    """Require DELETE of each topic."""
    body = request.body
    body.topics, denied_topics = yield from split(request.access, DELETE_TOPIC, body.topics, _name)
    error_fields = {**_DENIED, "low_watermark": -1}
    failures = yield from failed_topics(denied_topics, named, indexes_of, error_fields)
    return adding("topics", failures)


def describe_producers(request: CheckedRequest) -> Steps[Ruling]:
    """Require READ of each topic; the handler refuses invalid names."""
    body = request.body
    # Per topic: None if it may be read.
    refused: list[Fields | None] = []
    readable: list[Any] = []
    error_fields = {"error_code": int(TOPIC_DENIED), "error_message": MESSAGES[TOPIC_DENIED]}
    for topic in body.topics:
        if _is_readable(request, topic.name):
            readable.append(topic)
            refused.append(None)
        else:
            refused += yield from failed_topics([topic], named, _indexes_alone, error_fields)
        if len(refused) % STEP == 0:
            yield
    body.topics = readable

    def merge(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        results = iter(answer["topics"])
        topics = [next(results) if failure is None else failure for failure in refused]
        return with_field(answer, "topics", topics)

    return SERVED if len(readable) == len(refused) else Ruling(merge=merge)


def _is_readable(request: CheckedRequest, name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return True  # the handler refuses it
    return request.access.may(READ_TOPIC, name)


def find_coordinator(request: CheckedRequest) -> Steps[Ruling]:
    """Require DESCRIBE of each group or transactional id, CLUSTER_ACTION for share groups."""
    access, body = request.access, request.body
    has_several_keys = request.version >= _FIRST_FINDING_SEVERAL
    need, error = {
        _GROUP: (DESCRIBE_GROUP, GROUP_DENIED),
        _TRANSACTION: (DESCRIBE_TRANSACTIONAL_ID, TRANSACTIONAL_ID_DENIED),
    }.get(body.key_type, (CLUSTER_ACTION, CLUSTER_DENIED))
    error_fields = {"node_id": -1, "host": "", "port": -1, "error_code": int(error)}
    if need is CLUSTER_ACTION:
        if body.key_type != _SHARE or access.may(need):
            return SERVED
        is_allowed = None
    else:
        is_allowed = partial(access.may, need)
    keys = body.coordinator_keys if has_several_keys else [body.key]
    allowed: dict[str, bool] = {}
    for count, key in enumerate(keys, 1):
        if key not in allowed:
            allowed[key] = is_allowed is not None and is_allowed(key)
        if count % STEP == 0:
            yield
    if all(allowed.values()):
        return SERVED
    if not has_several_keys:
        return Ruling({**error_fields, "error_message": MESSAGES[error]})
    body.coordinator_keys = yield from kept(keys, allowed.__getitem__)
    # Kafka refuses share groups as a whole, with a message.
    message = MESSAGES[error] if need is CLUSTER_ACTION else ""

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        results = iter(answer["coordinators"])
        coordinators: list[Mapping[str, Any]] = []
        for count, key in enumerate(keys, 1):
            denied = {"key": key, "error_message": message, **error_fields}
            coordinators.append(next(results) if allowed[key] else denied)
            if count % STEP == 0:
                yield
        return with_field(answer, "coordinators", coordinators)

    return Ruling(merge=merge)


def alter_replica_log_dirs(request: CheckedRequest) -> Steps[Ruling]:
    """Require ALTER of the cluster; a denial is returned per partition."""
    if request.access.may(ALTER_CLUSTER):
        return SERVED
    topics = (topic for target in request.body.dirs for topic in target.topics)
    results = yield from failed_topics(
        topics,
        lambda topic: {"topic_name": topic.name},
        lambda topic: topic.partitions,
        {"error_code": int(CLUSTER_DENIED)},
    )
    return Ruling({"results": results})


def _name(topic: Any) -> str:
    return str(topic.name)


def _indexes_alone(topic: Any) -> Iterable[int]:
    indexes: Iterable[int] = topic.partition_indexes
    return indexes


_WITH_MESSAGE: Final = {"error_message": MESSAGES[CLUSTER_DENIED]}

BROKER_RULES: Final[dict[ApiKey, Rule]] = {
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.OFFSET_COMMIT: group_rules.offset_commit,
    ApiKey.OFFSET_FETCH: group_rules.offset_fetch,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: group_rules.join_group,
    ApiKey.HEARTBEAT: group_rules.read_group,
    ApiKey.LEAVE_GROUP: group_rules.read_group,
    ApiKey.SYNC_GROUP: group_rules.sync_group,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: group_rules.consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: group_rules.consumer_group_describe,
    ApiKey.STREAMS_GROUP_HEARTBEAT: group_rules.streams_group_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: group_rules.streams_group_describe,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: group_rules.read_group,
    ApiKey.SHARE_GROUP_HEARTBEAT: share_group_rules.share_group_heartbeat,
    ApiKey.SHARE_GROUP_DESCRIBE: share_group_rules.share_group_describe,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: share_group_rules.describe_share_group_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: share_group_rules.alter_share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: share_group_rules.delete_share_group_offsets,
    ApiKey.DESCRIBE_GROUPS: group_rules.describe_groups,
    ApiKey.LIST_GROUPS: group_rules.list_groups,
    ApiKey.DELETE_GROUPS: group_rules.delete_groups,
    ApiKey.OFFSET_DELETE: group_rules.offset_delete,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.INIT_PRODUCER_ID: transaction_rules.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: leader_epochs,
    ApiKey.ADD_PARTITIONS_TO_TXN: transaction_rules.add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: transaction_rules.add_offsets,
    ApiKey.END_TXN: transaction_rules.end_txn,
    ApiKey.WRITE_TXN_MARKERS: transaction_rules.write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: transaction_rules.txn_offset_commit,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: share_state_rules.share_group_state,
    ApiKey.READ_SHARE_GROUP_STATE: share_state_rules.share_group_state,
    ApiKey.WRITE_SHARE_GROUP_STATE: share_state_rules.share_group_state,
    ApiKey.DELETE_SHARE_GROUP_STATE: share_state_rules.share_group_state,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: share_state_rules.share_group_state,
    ApiKey.DESCRIBE_ACLS: of_cluster(DESCRIBE_CLUSTER, **_WITH_MESSAGE),
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs,
    ApiKey.DESCRIBE_LOG_DIRS: of_cluster(DESCRIBE_CLUSTER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: of_cluster(
        DESCRIBE_CLUSTER_CONFIGS, error_message=None, entries=None
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: of_cluster(
        DESCRIBE_CLUSTER,
        error_message=None,
        results=[{"user": "", "error_code": int(CLUSTER_DENIED), "error_message": None}],
    ),
    ApiKey.DESCRIBE_CLUSTER: cluster_operations,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: transaction_rules.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transaction_rules.list_transactions,
    ApiKey.LIST_CONFIG_RESOURCES: of_cluster(DESCRIBE_CLUSTER_CONFIGS),
}
CHECKED_BY_HANDLER: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
    }
)
