"""The fields of changes of ACLs: as ACLs, as text, as flags of kafka-acls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.client.security.acls import (
    ANY,
    CLUSTER_NAME,
    EVERY_HOST,
    OPERATIONS,
    RESOURCE_TYPES,
    AccessRule,
)
from wirebroker.codecs.acls import WILDCARD
from wirebroker.console.access.acl_effects import operations_on
from wirebroker.console.changes.change import ChangeError, Field, FieldKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PRINCIPAL: Final = Field("principal", "Principal", help="Who: User:NAME, or User:* for all users.")
HOST: Final = Field(
    "host",
    "From host",
    help="An address or a range such as 10.0.0.0/8; * for any.",
    is_required=False,
    default=EVERY_HOST,
)
PATTERN: Final = Field(
    "pattern_type",
    "Names",
    FieldKind.CHOICE,
    help="Whether the name is a whole name (* for all) or a prefix.",
    default="literal",
    choices=(("literal", "exactly this name"), ("prefixed", "all names that begin with it")),
)
TOPIC: Final = Field("topic", "Topic", help="A name, or * for all topics.")
PRODUCER_FIELDS: Final = (
    PRINCIPAL,
    TOPIC,
    Field(
        "transactional_id",
        "Transactional id",
        help="For producers with transactions; * for all.",
        is_required=False,
    ),
    PATTERN,
    HOST,
)
CONSUMER_FIELDS: Final = (
    PRINCIPAL,
    TOPIC,
    Field("group", "Group", help="Its consumer group; * for all groups."),
    PATTERN,
    HOST,
)
RULE_FIELDS: Final = (
    PRINCIPAL,
    Field(
        "permission",
        "Permission",
        FieldKind.CHOICE,
        help="A deny takes precedence over all ACLs that allow.",
        default="allow",
        choices=(("allow", "allow"), ("deny", "deny")),
    ),
    Field(
        "operation",
        "Operation",
        FieldKind.CHOICE,
        help="read, write, delete, alter imply describe; alter_configs implies describe_configs.",
        default="read",
        choices=tuple((word, word) for word in OPERATIONS if word != ANY),
    ),
    Field(
        "resource_type",
        "Resource",
        FieldKind.CHOICE,
        default="topic",
        choices=tuple((word, word.replace("_", " ")) for word in RESOURCE_TYPES if word != ANY),
    ),
    Field(
        "resource_name",
        "Name",
        help=f"The resource's name, * for all; for the cluster {CLUSTER_NAME}.",
        is_required=False,
        default=CLUSTER_NAME,
    ),
    PATTERN,
    HOST,
)


def principal_of(values: Mapping[str, str]) -> str:
    """Return the principal, or raise ChangeError."""
    principal = values["principal"]
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise ChangeError(f"{principal!r} is not a principal: write User:NAME", "principal")
    return principal


def check_pattern(name: str, pattern: str, field: str) -> None:
    """Refuse `*` as the beginning of names: Kafka then matches only names that begin with it."""
    if name == WILDCARD and pattern == "prefixed":
        raise ChangeError("* means all only with exact names: choose them", field)


def rule_of_values(values: Mapping[str, str]) -> AccessRule:
    """Return the ACL of RULE_FIELDS, or raise ChangeError."""
    kind, name, pattern = (values[f] for f in ("resource_type", "resource_name", "pattern_type"))
    if kind == "cluster" and (name, pattern) != (CLUSTER_NAME, "literal"):
        raise ChangeError(f"the only cluster is {CLUSTER_NAME}", "resource_name")
    if kind != "cluster" and name == CLUSTER_NAME:
        raise ChangeError(f"the name of the {kind} is missing", "resource_name")
    allowed = operations_on(kind)
    if values["operation"] not in {"all", *allowed}:
        raise ChangeError(
            f"a {kind} has no operation {values['operation']}: use all, {', '.join(allowed)}",
            "operation",
        )
    return AccessRule(
        kind,
        name,
        pattern,
        principal_of(values),
        values["host"],
        values["operation"],
        values["permission"],
    )


def rule_text(rule: AccessRule) -> str:
    """Return an ACL in a sentence."""
    resource = names_text(rule.resource_type, rule.resource_name, rule.pattern_type)
    host = "any host" if rule.host == EVERY_HOST else rule.host
    return f"{rule.permission} {rule.principal} to {rule.operation} on {resource} from {host}"


def names_text(resource_type: str, name: str, pattern: str) -> str:
    """Return the resources of a pattern, such as `all topics that begin with ord`."""
    kind = resource_type.replace("_", " ")
    if pattern == "prefixed":
        return f"all {kind}s that begin with {name}"
    return f"all {kind}s" if name == WILDCARD else f"{kind} {name}"


def _resource_flags(rule: AccessRule) -> tuple[str, ...]:
    if rule.resource_type == "cluster":
        return ("--cluster",)
    flag = "user-principal" if rule.resource_type == "user" else rule.resource_type
    pattern = ("--resource-pattern-type", rule.pattern_type)
    return (f"--{flag.replace('_', '-')}", rule.resource_name, *pattern)


def rule_flags(rule: AccessRule) -> tuple[str, ...]:
    """Return the flags of kafka-acls for one ACL."""
    return (
        *(f"--{rule.permission}-principal", rule.principal),
        *(f"--{rule.permission}-host", rule.host),
        *("--operation", rule.operation),
        *_resource_flags(rule),
    )


def client_rules(
    values: Mapping[str, str], table: Mapping[str, Sequence[str]], names: Mapping[str, str]
) -> list[AccessRule]:
    """Return the ACLs that allow the operations of a table, on names by resource type."""
    principal, host, pattern = principal_of(values), values["host"], values["pattern_type"]
    for kind, name in names.items():
        check_pattern(name, pattern, kind)
    return [
        AccessRule(kind, name, pattern, principal, host, operation, "allow")
        for kind, name in names.items()
        if name
        for operation in table[kind]
    ]


def client_flags(values: Mapping[str, str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the flags of kafka-acls for a producer's or consumer's ACLs."""
    resources = [
        flag
        for kind, name in names.items()
        if name
        for flag in (f"--{kind.replace('_', '-')}", name)
    ]
    principal = ("--allow-principal", values["principal"], "--allow-host", values["host"])
    return (*principal, *resources, "--resource-pattern-type", values["pattern_type"])
