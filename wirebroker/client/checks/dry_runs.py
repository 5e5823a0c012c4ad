"""Checks of dry runs: what the cluster would refuse. They change nothing.

Brokers report the operations that a user is allowed (KIP-430); others are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.cluster.quorum import quorum_of
from wirebroker.client.cluster_nodes import describe_cluster
from wirebroker.client.configs.configs import BROKER, TOPIC, configs_of
from wirebroker.client.errors import ClientError, check
from wirebroker.client.groups.groups import describe_group
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
_ONLY_COMPACTED: Final = "its cleanup.policy is compact; records are deleted only with delete in it"
_AT_REST: Final = frozenset({"Empty", "Dead"})


async def check_topic_rights(
    client: KafkaClient, names: Sequence[str], operation: str, what: str
) -> None:
    """Check that the user is allowed an operation on topics.

    Args:
        client: The cluster.
        names: The topics.
        operation: A key of OPERATIONS.
        what: The action in words, such as `deleted`.

    Raises:
        ClientError: TOPIC_AUTHORIZATION_FAILED.
    """

    def body(version: int) -> dict[str, Any]:
        asked = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
        if version >= _FIRST_OF_TOPICS:
            asked["include_topic_authorized_operations"] = True
        return asked

    for topic in (await client.request(ApiKey.METADATA, body)).topics:
        if not _is_allowed(topic, "topic_authorized_operations", operation):
            check(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"topic {topic.name} cannot be {what}")


async def check_cluster_rights(client: KafkaClient, operation: str, what: str) -> None:
    """Check that the user is allowed an operation on the cluster.

    Args:
        client: The cluster.
        operation: A key of OPERATIONS.
        what: The failure in words, such as `replicas cannot be moved`.

    Raises:
        ClientError: CLUSTER_AUTHORIZATION_FAILED.
    """
    found = await describe_cluster(client, operations=True)
    if not _is_allowed(found, "cluster_authorized_operations", operation):
        check(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, what)


async def check_deletable_topics(client: KafkaClient, names: Sequence[str]) -> None:
    """Check that topics can be deleted.

    Raises:
        ClientError: TOPIC_AUTHORIZATION_FAILED, TOPIC_DELETION_DISABLED.
    """
    await check_topic_rights(client, names, "delete", "deleted")
    for broker in (await client.broker_ids())[:1]:  # none if all are fenced
        if await _config(client, BROKER, str(broker), "delete.topic.enable") == "false":
            check(ErrorCode.TOPIC_DELETION_DISABLED, f"topic {names[0]} cannot be deleted")


async def check_deletable_records(client: KafkaClient, places: Sequence[TopicPartition]) -> None:
    """Check that the oldest records of a topic's partitions can be deleted.

    Raises:
        ClientError: INVALID_TOPIC_EXCEPTION for an internal topic, POLICY_VIOLATION for a compacted
            one, TOPIC_AUTHORIZATION_FAILED.
    """
    name = places[0].topic
    (topic,) = (await client.metadata([name])).topics
    if topic.is_internal:
        check(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{places[0]} cannot be trimmed",
            "Kafka keeps it for itself",
        )
    await check_topic_rights(client, [name], "delete", "trimmed")
    policies = await _config(client, TOPIC, name, "cleanup.policy")
    if policies is not None and "compact" in policies and "delete" not in policies:
        check(ErrorCode.POLICY_VIOLATION, f"{places[0]} cannot be trimmed", _ONLY_COMPACTED)


async def check_group_deletion(client: KafkaClient, name: str) -> None:
    """Check that a group can be deleted.

    Raises:
        ClientError: NON_EMPTY_GROUP, GROUP_AUTHORIZATION_FAILED.
    """
    what = f"group {name} cannot be deleted"
    await _check_group_rights(client, name, "delete", what)
    await _check_idle(client, name, ErrorCode.NON_EMPTY_GROUP, what)


async def check_offset_commit(
    client: KafkaClient, name: str, places: Collection[TopicPartition]
) -> None:
    """Check that offsets can be committed for a group without members.

    Raises:
        ClientError: UNKNOWN_MEMBER_ID for a group with members, GROUP_AUTHORIZATION_FAILED,
            TOPIC_AUTHORIZATION_FAILED.
    """
    what = f"offsets of group {name} cannot be committed"
    await _check_group_rights(client, name, "read", what)
    await check_topic_rights(client, sorted({each.topic for each in places}), "read", "read")
    await _check_idle(client, name, ErrorCode.UNKNOWN_MEMBER_ID, what)


async def check_broker_unregistration(client: KafkaClient, broker_id: int) -> None:
    """Check that a broker can be unregistered.

    Raises:
        ClientError: BROKER_ID_NOT_REGISTERED, CLUSTER_AUTHORIZATION_FAILED.
    """
    what = f"broker {broker_id} cannot be unregistered"
    await check_cluster_rights(client, "alter", what)
    known = await _registered(client)
    _check_registered(known, [broker_id], ErrorCode.BROKER_ID_NOT_REGISTERED, what)


async def check_controller_unregistration(client: KafkaClient, controller_id: int) -> None:
    """Check that a controller can be unregistered, as far as brokers report.

    Raises:
        ClientError: INVALID_REQUEST for the active controller, CLUSTER_AUTHORIZATION_FAILED.
    """
    what = f"controller {controller_id} cannot be unregistered"
    await check_cluster_rights(client, "alter", what)
    if (await quorum_of(client)).leader_id == controller_id:
        check(ErrorCode.INVALID_REQUEST, what, "it is the active controller")


async def check_moves(client: KafkaClient, moves: Mapping[TopicPartition, Collection[int]]) -> None:
    """Check that replicas can be moved.

    Raises:
        ClientError: INVALID_REPLICA_ASSIGNMENT for an unregistered broker,
            CLUSTER_AUTHORIZATION_FAILED.
    """
    await check_cluster_rights(client, "alter", "replicas cannot be moved")
    known = await _registered(client)
    for place, brokers in moves.items():
        what = f"{place} cannot be moved"
        _check_registered(known, brokers, ErrorCode.INVALID_REPLICA_ASSIGNMENT, what)


async def _check_group_rights(client: KafkaClient, name: str, operation: str, what: str) -> None:
    def body(version: int) -> dict[str, Any]:
        asked: dict[str, Any] = {"groups": [name]}
        if version >= _FIRST_OF_GROUPS:
            asked["include_authorized_operations"] = True
        return asked

    answer = await client.request_of_coordinator(
        name, ApiKey.DESCRIBE_GROUPS, body, error_of=lambda answer: int(answer.groups[0].error_code)
    )
    if not _is_allowed(answer.groups[0], "authorized_operations", operation):
        check(ErrorCode.GROUP_AUTHORIZATION_FAILED, what)


async def _check_idle(client: KafkaClient, name: str, code: int, what: str) -> None:
    """Check that a group has no members, or does not exist."""
    try:
        found = await describe_group(client, name)
    except ClientError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if found.state not in _AT_REST:
        check(code, what)


async def _registered(client: KafkaClient) -> frozenset[int]:
    """Return the ids of all registered brokers, fenced ones included."""
    found = await describe_cluster(client, fenced=True)
    return frozenset(each.broker_id for each in found.brokers)


def _check_registered(known: frozenset[int], brokers: Iterable[int], code: int, what: str) -> None:
    unknown = sorted(set(brokers) - known)
    if unknown:
        check(code, what, f"broker {unknown[0]} is not registered")


async def _config(client: KafkaClient, kind: int, resource: str, name: str) -> str | None:
    """Return a config; None if the user is not allowed to see it."""
    try:
        configs = await configs_of(client, kind, resource, names=[name])
    except ClientError as error:
        if not error.code:
            raise
        return None
    return next((each.value for each in configs if each.name == name), None)


def _is_allowed(answer: Any, field: str, operation: str) -> bool:
    operations = getattr(answer, field, _NOT_TOLD)
    return operations == _NOT_TOLD or bool(operations >> OPERATIONS[operation] & 1)
