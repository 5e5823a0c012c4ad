"""The cluster's ACLs, indexed so that a decision looks at few of them.

A name matches its literal pattern, one prefix per existing length, and the wildcard. A deny wins
over any allow. Any matching rule, even for another principal, disables the default for resources
without rules.

    allow   Read, Write, Delete, Alter imply Describe; AlterConfigs implies DescribeConfigs
    deny    implies nothing

Source: Kafka's StandardAuthorizerData.findAclRule; Authorizer.authorizeByResourceType.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.acls import (
    ALL_OPERATIONS,
    DENY,
    EVERYBODY,
    LITERAL,
    WILDCARD,
    AclEntry,
    Operation,
)
from wirebroker.codecs.address_ranges import is_in_range, is_range

if TYPE_CHECKING:
    from collections.abc import Iterator

# By principal: the rules of one pattern, with the number of times each was added.
_Rules = dict[str, dict[AclEntry, int]]

_IMPLYING: Final[dict[int, frozenset[int]]] = {
    Operation.DESCRIBE: frozenset(
        {
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
            ALL_OPERATIONS,
        }
    ),
    Operation.DESCRIBE_CONFIGS: frozenset(
        {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, ALL_OPERATIONS}
    ),
}


class Verdict(NamedTuple):
    """The deciding rule, if any, and whether any rule concerns the resource."""

    entry: AclEntry | None
    has_rules: bool


class _Names(NamedTuple):
    """Names of patterns, in insertion order."""

    literal: dict[str, None]
    prefixed: dict[str, None]


class _Patterns:
    """The rules for one resource type."""

    __slots__ = ("lengths", "literal", "of_principal", "prefixed")

    def __init__(self) -> None:
        self.of_principal: dict[str, _Names] = {}
        self.literal: dict[str, _Rules] = {}
        self.prefixed: dict[str, _Rules] = {}
        # How many prefixes have each length.
        self.lengths: dict[int, int] = {}

    def about(self, name: str) -> Iterator[_Rules]:
        literal = self.literal
        rules = literal.get(name)
        if rules is not None:
            yield rules
        for length in self.lengths:
            if length <= len(name):
                rules = self.prefixed.get(name[:length])
                if rules is not None:
                    yield rules
        rules = literal.get(WILDCARD)
        if rules is not None and name != WILDCARD:
            yield rules

    def names_for(self, principal: str, *, is_literal: bool) -> list[str]:
        names: dict[str, None] = {}
        for candidate in (principal, EVERYBODY):
            patterns = self.of_principal.get(candidate)
            if patterns is not None:
                names.update(patterns.literal if is_literal else patterns.prefixed)
        return list(names)


class AclIndex:
    """All rules."""

    __slots__ = ("_by_type",)

    def __init__(self) -> None:
        self._by_type: dict[int, _Patterns] = {}

    def add(self, entry: AclEntry) -> None:
        """Add a rule."""
        patterns = self._by_type.get(entry.resource_type)
        if patterns is None:
            patterns = self._by_type[entry.resource_type] = _Patterns()
        is_literal = entry.pattern_type == LITERAL
        by_name = patterns.literal if is_literal else patterns.prefixed
        name = entry.resource_name
        if name not in by_name:
            by_name[name] = {}
            if not is_literal:
                patterns.lengths[len(name)] = patterns.lengths.get(len(name), 0) + 1
        rules = by_name[name].setdefault(entry.principal, {})
        rules[entry] = rules.get(entry, 0) + 1
        names = patterns.of_principal.setdefault(entry.principal, _Names({}, {}))
        (names.literal if is_literal else names.prefixed)[name] = None

    def remove(self, entry: AclEntry) -> None:
        """Remove a rule."""
        patterns = self._by_type[entry.resource_type]
        is_literal = entry.pattern_type == LITERAL
        by_name = patterns.literal if is_literal else patterns.prefixed
        name = entry.resource_name
        rules = by_name[name][entry.principal]
        rules[entry] -= 1
        if rules[entry]:
            return
        del rules[entry]
        if rules:
            return
        del by_name[name][entry.principal]
        names = patterns.of_principal[entry.principal]
        del (names.literal if is_literal else names.prefixed)[name]
        if not names.literal and not names.prefixed:
            del patterns.of_principal[entry.principal]
        if by_name[name]:
            return
        del by_name[name]
        if not is_literal:
            patterns.lengths[len(name)] -= 1
            if not patterns.lengths[len(name)]:
                del patterns.lengths[len(name)]

    def find(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> Verdict:
        """Return the verdict for an operation on one resource."""
        patterns = self._by_type.get(resource_type)
        if patterns is None:
            return Verdict(None, has_rules=False)
        allowing: AclEntry | None = None
        has_rules = False
        for rules in patterns.about(name):
            has_rules = True
            for entry in _of(rules, principal):
                if not _is_about(entry, host, operation):
                    continue
                if entry.permission_type == DENY:
                    return Verdict(entry, has_rules=True)
                allowing = entry
        return Verdict(allowing, has_rules)

    def allows_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return whether a rule allows an operation on some resource of a type.

        No operation implies another; a denied literal or prefix excludes what it covers.
        """
        patterns = self._by_type.get(resource_type)
        if patterns is None:
            return False
        ask = (principal, host, operation)
        wildcard = patterns.literal.get(WILDCARD, {})
        if _says(wildcard, *ask, is_deny=True):
            return False
        if _says(wildcard, *ask, is_deny=False):
            return True
        prefixes = patterns.names_for(principal, is_literal=False)
        prefixed = patterns.prefixed
        denied = {name for name in prefixes if _says(prefixed[name], *ask, is_deny=True)}
        for name in patterns.names_for(principal, is_literal=True):
            rules = patterns.literal[name]
            is_allowed = _says(rules, *ask, is_deny=False) and not _says(rules, *ask, is_deny=True)
            if is_allowed and not _is_covered(name, denied):
                return True
        return any(
            _says(prefixed[name], *ask, is_deny=False) and not _is_covered(name, denied)
            for name in prefixes
        )


def _of(rules: _Rules, principal: str) -> Iterator[AclEntry]:
    yield from rules.get(principal, ())
    if principal != EVERYBODY:
        yield from rules.get(EVERYBODY, ())


def _is_about(entry: AclEntry, host: str, operation: int) -> bool:
    if not _is_of(entry, host):
        return False
    if entry.operation in {operation, ALL_OPERATIONS}:
        return True
    implying_operations = _IMPLYING.get(operation)
    return (
        implying_operations is not None
        and entry.permission_type != DENY
        and entry.operation in implying_operations
    )


def _is_of(entry: AclEntry, host: str) -> bool:
    return entry.host in {WILDCARD, host} or (
        is_range(entry.host) and is_in_range(host, entry.host)
    )


def _says(rules: _Rules, principal: str, host: str, operation: int, *, is_deny: bool) -> bool:
    return any(
        (entry.permission_type == DENY) is is_deny
        and _is_of(entry, host)
        and entry.operation in {operation, ALL_OPERATIONS}
        for entry in _of(rules, principal)
    )


def _is_covered(name: str, prefixes: set[str]) -> bool:
    return bool(prefixes) and any(name[:end] in prefixes for end in range(1, len(name) + 1))
