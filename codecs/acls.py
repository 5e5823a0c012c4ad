"""ACL rules that allow or deny operations on resources, and filters that select rules.

A LITERAL pattern matches one name, or all if it is `*`; a PREFIXED pattern matches all names with
that prefix. A filter's field that is ANY or None matches everything. Unknown numbers are kept, so
that entries of a newer controller stay distinct.

Source: Kafka's AclBinding, AclBindingFilter, ResourcePatternFilter and their enums.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

ANY: Final = 1  # in filters, for any number below
MATCH: Final = 2  # in filters: every pattern that applies to the name
LITERAL: Final = 3
PREFIXED: Final = 4
ALL_OPERATIONS: Final = 2
DENY: Final = 2
ALLOW: Final = 3
WILDCARD: Final = "*"
EVERYBODY: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
PATTERN_TYPES: Final = {1: "ANY", 2: "MATCH", LITERAL: "LITERAL", PREFIXED: "PREFIXED"}
PERMISSIONS: Final = {1: "ANY", DENY: "DENY", ALLOW: "ALLOW"}


class Resource(IntEnum):
    """A kind of resource."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """An operation on a resource."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


# Source: Kafka's AclEntry.supportedOperations.
SUPPORTED_OPERATIONS: Final[dict[Resource, tuple[Operation, ...]]] = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    Resource.TRANSACTIONAL_ID: (
        Operation.DESCRIBE,
        Operation.WRITE,
        Operation.TWO_PHASE_COMMIT,
    ),
    Resource.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Resource.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}

RESOURCE_TYPES: Final = frozenset({ANY, *Resource})
OPERATIONS: Final = frozenset({ANY, ALL_OPERATIONS, *Operation})


class AclEntry(NamedTuple):
    """One rule."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str  # such as `User:alice`
    host: str  # an address, a range, or WILDCARD
    operation: int  # ALL_OPERATIONS or an Operation
    permission_type: int


class AclFilter(NamedTuple):
    """A selection of rules."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def fits(self, entry: AclEntry) -> bool:
        """Return whether the filter matches a rule."""
        return (
            self.resource_type in {ANY, entry.resource_type}
            and self.operation in {ANY, entry.operation}
            and self.permission_type in {ANY, entry.permission_type}
            and (self.principal is None or self.principal == entry.principal)
            and (self.host is None or self.host == entry.host)
            and self._fits_pattern(entry)
        )

    def _fits_pattern(self, entry: AclEntry) -> bool:
        kind, name = self.pattern_type, self.resource_name
        if kind not in {ANY, MATCH, entry.pattern_type}:
            return False
        if name is None:
            return True
        if kind != MATCH:
            return name == entry.resource_name
        if entry.pattern_type == PREFIXED:
            return name.startswith(entry.resource_name)
        return entry.resource_name in {name, WILDCARD}


def entry_of(body: Any) -> AclEntry:
    """Return the rule of an AccessControlEntryRecord."""
    return AclEntry(
        body.resource_type,
        body.resource_name,
        body.pattern_type,
        body.principal,
        body.host,
        body.operation,
        body.permission_type,
    )


def creation_of(asked: Any) -> AclEntry:
    """Return the rule of an element of a CreateAclsRequest."""
    return AclEntry(
        asked.resource_type,
        asked.resource_name,
        asked.resource_pattern_type,
        asked.principal,
        asked.host,
        asked.operation,
        asked.permission_type,
    )


def filter_of(asked: Any) -> AclFilter:
    """Return the filter of a DescribeAclsRequest or an element of a DeleteAclsRequest."""
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def has_unknown(parts: AclEntry | AclFilter) -> bool:
    """Return whether one of the numbers is unknown; Kafka refuses such a request."""
    return (
        parts.resource_type not in RESOURCE_TYPES
        or parts.pattern_type not in PATTERN_TYPES
        or parts.operation not in OPERATIONS
        or parts.permission_type not in PERMISSIONS
    )
