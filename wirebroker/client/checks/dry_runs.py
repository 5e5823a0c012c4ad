"""Checks of dry runs, which change nothing and raise the error that the cluster would return.

Brokers report the operations that a user is allowed (KIP-430); others are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.cluster.quorum import quorum_of
from wirebroker.client.cluster_nodes import describe_cluster
from wirebroker.client.configs.configs import BROKER, TOPIC, configs_of
from wirebroker.client.errors import ClientError, check
from wirebroker.client.groups.group_kinds import listed_group
from wirebroker.client.security.acls import OPERATIONS
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

# Value in responses if operations were not requested.
_NOT_TOLD: Final = -(1 << 31)
# First versions with operations.
_FIRST_OF_TOPICS: Final = 8
_FIRST_OF_GROUPS: Final = 3
_ONLY_COMPACTED: Final = "its cleanup.policy is compact; add delete to it to delete records"
_AT_REST: Final = frozenset({"Empty", "Dead"})


async def check_topic_rights(
    client: KafkaClient, names: Sequence[str], operation: str, action: str
) -> None:
    """Check that the user is allowed an operation (of OPERATIONS) on topics.

    `action` describes it, such as `deleted`.
    """

    def body(version: int) -> dict[str, Any]:
        request = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
        if version >= _FIRST_OF_TOPICS:
            request["include_topic_authorized_operations"] = True
        return request

    for topic in (await client.request(ApiKey.METADATA, body)).topics:
        if not _is_allowed(topic, "topic_authorized_operations", operation):
            check(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"topic {topic.name} cannot be {action}")


async def check_cluster_rights(client: KafkaClient, operation: str, failure: str) -> None:
    """Check that the user is allowed an operation (of OPERATIONS) on the cluster."""
    cluster = await describe_cluster(client, operations=True)
    if not _is_allowed(cluster, "cluster_authorized_operations", operation):
        check(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, failure)


async def missing_cluster_rights(client: KafkaClient, operations: Sequence[str]) -> list[str]:
    """Return those of the operations (of OPERATIONS) on the cluster that the user lacks."""
    cluster = await describe_cluster(client, operations=True)
    return [
        operation
        for operation in operations
        if not _is_allowed(cluster, "cluster_authorized_operations", operation)
    ]


async def check_deletable_topics(client: KafkaClient, names: Sequence[str]) -> None:
    """Check that topics can be deleted."""
    await check_topic_rights(client, names, "delete", "deleted")
    for broker in (await client.broker_ids())[:1]:  # none if all are fenced
        if await _config(client, BROKER, str(broker), "delete.topic.enable") == "false":
            check(ErrorCode.TOPIC_DELETION_DISABLED, f"topic {names[0]} cannot be deleted")


async def check_deletable_records(
    client: KafkaClient, partitions: Sequence[TopicPartition]
) -> None:
    """Check that the oldest records of a topic can be deleted.

    Raises:
        ClientError: INVALID_TOPIC_EXCEPTION for an internal topic, POLICY_VIOLATION for a compacted
            one.
    """
    name = partitions[0].topic
    (topic,) = (await client.metadata([name])).topics
    if topic.is_internal:
        check(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{partitions[0]} cannot be trimmed",
            "it is an internal topic",
        )
    await check_topic_rights(client, [name], "delete", "trimmed")
    policies = await _config(client, TOPIC, name, "cleanup.policy")
    if policies is not None and "compact" in policies and "delete" not in policies:
        check(ErrorCode.POLICY_VIOLATION, f"{partitions[0]} cannot be trimmed", _ONLY_COMPACTED)


async def check_group_rights(client: KafkaClient, name: str, operation: str, failure: str) -> None:
    """Check that the user is allowed an operation (of OPERATIONS) on a group."""

    def body(version: int) -> dict[str, Any]:
        request: dict[str, Any] = {"groups": [name]}
        if version >= _FIRST_OF_GROUPS:
            request["include_authorized_operations"] = True
        return request

    answer = await client.request_of_coordinator(
        name, ApiKey.DESCRIBE_GROUPS, body, error_of=lambda answer: int(answer.groups[0].error_code)
    )
    if not _is_allowed(answer.groups[0], "authorized_operations", operation):
        check(ErrorCode.GROUP_AUTHORIZATION_FAILED, failure)


async def check_group_deletion(client: KafkaClient, name: str) -> None:
    """Check that a group can be deleted."""
    failure = f"group {name} cannot be deleted"
    await check_group_rights(client, name, "delete", failure)
    await _check_idle(client, name, ErrorCode.NON_EMPTY_GROUP, failure)


async def check_offset_commit(
    client: KafkaClient, name: str, partitions: Collection[TopicPartition]
) -> None:
    """Check that offsets can be committed for a group without members.

    Raises:
        ClientError: UNKNOWN_MEMBER_ID for a group with members.
    """
    failure = f"offsets of group {name} cannot be committed"
    await check_group_rights(client, name, "read", failure)
    await check_topic_rights(
        client, sorted({partition.topic for partition in partitions}), "read", "read"
    )
    await _check_idle(client, name, ErrorCode.UNKNOWN_MEMBER_ID, failure)


async def check_share_offset_change(
    client: KafkaClient, name: str, partitions: Collection[TopicPartition]
) -> None:
    """Check that the start offsets of a share group can be changed.

    Raises:
        ClientError: NON_EMPTY_GROUP for a group with members.
    """
    failure = f"the offsets of share group {name} cannot be changed"
    await check_group_rights(client, name, "read", failure)
    await check_topic_rights(
        client, sorted({partition.topic for partition in partitions}), "read", "read"
    )
    await _check_idle(client, name, ErrorCode.NON_EMPTY_GROUP, failure)


async def check_broker_unregistration(client: KafkaClient, broker_id: int) -> None:
    """Check that a broker can be unregistered."""
    failure = f"broker {broker_id} cannot be unregistered"
    await check_cluster_rights(client, "alter", failure)
    registered_ids = await _registered(client)
    _check_registered(registered_ids, [broker_id], ErrorCode.BROKER_ID_NOT_REGISTERED, failure)


async def check_controller_unregistration(client: KafkaClient, controller_id: int) -> None:
    """Check that a controller can be unregistered, as far as is known.

    Raises:
        ClientError: INVALID_REQUEST for the active controller.
    """
    failure = f"controller {controller_id} cannot be unregistered"
    await check_cluster_rights(client, "alter", failure)
    if (await quorum_of(client)).leader_id == controller_id:
        check(ErrorCode.INVALID_REQUEST, failure, "it is the active controller")


async def check_moves(client: KafkaClient, moves: Mapping[TopicPartition, Collection[int]]) -> None:
    """Check that replicas can be moved.

    Raises:
        ClientError: INVALID_REPLICA_ASSIGNMENT for an unregistered broker.
    """
    await check_cluster_rights(client, "alter", "replicas cannot be moved")
    registered_ids = await _registered(client)
    for partition, brokers in moves.items():
        failure = f"{partition} cannot be moved"
        _check_registered(registered_ids, brokers, ErrorCode.INVALID_REPLICA_ASSIGNMENT, failure)


async def _check_idle(client: KafkaClient, name: str, code: int, failure: str) -> None:
    """Check that a group has no members or does not exist."""
    group = await listed_group(client, name)
    if group is not None and group.state not in _AT_REST:
        check(code, failure)


async def _registered(client: KafkaClient) -> frozenset[int]:
    """Return all registered brokers, fenced ones included."""
    cluster = await describe_cluster(client, fenced=True)
    return frozenset(broker.broker_id for broker in cluster.brokers)


def _check_registered(
    registered_ids: frozenset[int], brokers: Iterable[int], code: int, failure: str
) -> None:
    unknown = sorted(set(brokers) - registered_ids)
    if unknown:
        check(code, failure, f"broker {unknown[0]} is not registered")


async def _config(client: KafkaClient, kind: int, resource: str, name: str) -> str | None:
    """Return a config; None if the user may not see it."""
    try:
        configs = await configs_of(client, kind, resource, names=[name])
    except ClientError as error:
        if not error.code:
            raise
        return None
    return next((config.value for config in configs if config.name == name), None)


def _is_allowed(answer: Any, field: str, operation: str) -> bool:
    operations = getattr(answer, field, _NOT_TOLD)
    return operations == _NOT_TOLD or bool(operations >> OPERATIONS[operation] & 1)
