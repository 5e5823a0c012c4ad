"""ACLs: list, create, delete.

Source: Kafka's ResourceType, PatternType, AclOperation, AclPermissionType; KIP-11, KIP-290.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, check, check_all
from wirebroker.codecs.acls import AclEntry
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

ANY: Final = "any"
MATCH: Final = "match"

RESOURCE_TYPES: Final = {
    ANY: 1,
    "topic": 2,
    "group": 3,
    "cluster": 4,
    "transactional_id": 5,
    "delegation_token": 6,
    "user": 7,
}
PATTERN_TYPES: Final = {ANY: 1, MATCH: 2, "literal": 3, "prefixed": 4}
OPERATIONS: Final = {
    ANY: 1,
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster_action": 9,
    "describe_configs": 10,
    "alter_configs": 11,
    "idempotent_write": 12,
    "create_tokens": 13,
    "describe_tokens": 14,
    "two_phase_commit": 15,
}
PERMISSIONS: Final = {ANY: 1, "deny": 2, "allow": 3}
# The only resource of type cluster.
CLUSTER_NAME: Final = "kafka-cluster"
EVERY_HOST: Final = "*"
# What producers and consumers need, by resource type. Source: Kafka's AclCommand.
PRODUCER_OPERATIONS: Final = {
    "topic": ("write", "describe", "create"),
    "transactional_id": ("write", "describe"),
}
CONSUMER_OPERATIONS: Final = {"topic": ("read", "describe"), "group": ("read",)}


class AccessRule(NamedTuple):
    """One ACL, in words of the tables above."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class RuleFilter(NamedTuple):
    """A filter of ACLs; None matches any name."""

    resource_type: str = ANY
    resource_name: str | None = None
    pattern_type: str = ANY
    principal: str | None = None
    host: str | None = None
    operation: str = ANY
    permission: str = ANY


async def list_acls(client: KafkaClient, rule_filter: RuleFilter) -> list[AccessRule]:
    """Return the matching ACLs."""
    answer = await client.request(ApiKey.DESCRIBE_ACLS, _filter_row(rule_filter))
    _check(answer.error_code, "ACLs cannot be listed", answer.error_message)
    return sorted(_rule(acl, resource) for resource in answer.resources for acl in resource.acls)


async def create_acls(client: KafkaClient, rules: Sequence[AccessRule]) -> None:
    """Create ACLs that do not exist.

    Raises:
        ClientError: One is refused; others may have been created.
    """
    rows = [
        {
            "resource_type": RESOURCE_TYPES[rule.resource_type],
            "resource_name": rule.resource_name,
            "resource_pattern_type": PATTERN_TYPES[rule.pattern_type],
            "principal": rule.principal,
            "host": rule.host,
            "operation": OPERATIONS[rule.operation],
            "permission_type": PERMISSIONS[rule.permission],
        }
        for rule in rules
    ]
    answer = await client.request_of_controller(ApiKey.CREATE_ACLS, {"creations": rows})
    results = list(zip(rules, answer.results, strict=True))
    for rule, result in results:
        if result.error_code == ErrorCode.SECURITY_DISABLED:
            _check(result.error_code, _not_added(rule), result.error_message)
    check_all(
        ((result.error_code, _not_added(rule), result.error_message) for rule, result in results),
        "other ACL",
        "added",
    )


def _not_added(rule: AccessRule) -> str:
    return f"cannot add the ACL for {rule.principal} on {rule.resource_type} {rule.resource_name}"


async def delete_acls(client: KafkaClient, rule_filter: RuleFilter) -> list[AccessRule]:
    """Delete the matching ACLs, and return them.

    Raises:
        ClientError: A deletion is refused; the message says how many ACLs were deleted.
    """
    return await _delete(client, [rule_filter])


async def delete_all_acls(client: KafkaClient, rules: Sequence[AccessRule]) -> int:
    """Delete ACLs, and return how many existed.

    Raises:
        ClientError: A deletion is refused; the message says how many ACLs were deleted.
    """
    return len(await _delete(client, [RuleFilter(*rule) for rule in rules]))


async def _delete(client: KafkaClient, filters: Sequence[RuleFilter]) -> list[AccessRule]:
    body = {"filters": [_filter_row(rule_filter) for rule_filter in filters]}
    answer = await client.request_of_controller(ApiKey.DELETE_ACLS, body)
    results, failure = answer.filter_results, "ACLs cannot be deleted"
    for result in results:
        if result.error_code == ErrorCode.SECURITY_DISABLED:
            _check(result.error_code, failure, result.error_message)
    deleted = [acl for result in results for acl in result.matching_acls]
    rows = [(row.error_code, failure, row.error_message) for row in results if row.error_code]
    rows += [(row.error_code, "an ACL cannot be deleted", row.error_message) for row in deleted]
    check_all(rows, "other ACL", "deleted")
    return sorted(_rule(acl, acl) for acl in deleted)


def entry_of(rule: AccessRule) -> AclEntry | None:
    """Return an ACL in the numbers of the protocol; None if it has words of a newer Kafka."""
    resource_type = RESOURCE_TYPES.get(rule.resource_type)
    pattern_type = PATTERN_TYPES.get(rule.pattern_type)
    operation = OPERATIONS.get(rule.operation)
    permission = PERMISSIONS.get(rule.permission)
    if resource_type is None or pattern_type is None or operation is None or permission is None:
        return None
    return AclEntry(
        resource_type,
        rule.resource_name,
        pattern_type,
        rule.principal,
        rule.host,
        operation,
        permission,
    )


def rule_of(entry: AclEntry) -> AccessRule:
    """Return an ACL in words."""
    return AccessRule(
        _word(RESOURCE_TYPES, entry.resource_type),
        entry.resource_name,
        _word(PATTERN_TYPES, entry.pattern_type),
        entry.principal,
        entry.host,
        _word(OPERATIONS, entry.operation),
        _word(PERMISSIONS, entry.permission_type),
    )


def _check(code: int, failure: str, message: str | None) -> None:
    if code == ErrorCode.SECURITY_DISABLED:
        raise ClientError(
            f"{failure}: no authorizer is configured (authorizer.class.name)",
            code=code,
        )
    check(code, failure, message)


def _filter_row(rule_filter: RuleFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": RESOURCE_TYPES[rule_filter.resource_type],
        "resource_name_filter": rule_filter.resource_name,
        "pattern_type_filter": PATTERN_TYPES[rule_filter.pattern_type],
        "principal_filter": rule_filter.principal,
        "host_filter": rule_filter.host,
        "operation": OPERATIONS[rule_filter.operation],
        "permission_type": PERMISSIONS[rule_filter.permission],
    }


def _rule(row: Any, resource: Any) -> AccessRule:
    return rule_of(
        AclEntry(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            row.principal,
            row.host,
            row.operation,
            row.permission_type,
        )
    )


def _word(table: Mapping[str, int], number: int) -> str:
    return next((word for word, code in table.items() if code == number), f"unknown({number})")
