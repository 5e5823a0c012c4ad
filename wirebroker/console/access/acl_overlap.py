"""What two ACLs have in common: users, hosts and names that both apply to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.acls import EVERYBODY, WILDCARD
from wirebroker.codecs.address_ranges import is_in_range, is_range, parse_range

if TYPE_CHECKING:
    from wirebroker.client.security.acls import AccessRule


def common_principal(first: str, second: str) -> str | None:
    """Return the principal that two ACLs apply to, or None."""
    if second in {first, EVERYBODY}:
        return first
    return second if first == EVERYBODY else None


def common_host(first: str, second: str) -> str | None:
    """Return the address or range that two ACLs apply to, or None."""
    if _contains(second, first):
        return first
    return second if _contains(first, second) else None


def address_of(host: str) -> str:
    """Return an address of a host: the first one of a range."""
    if not is_range(host):
        return host
    address = host.partition("/")[0]
    return address if is_in_range(address, host) else host


def _contains(host: str, other: str) -> bool:
    if host in {WILDCARD, other}:
        return True
    if not is_range(host) or other == WILDCARD:
        return False
    if not is_in_range(address_of(other), host):
        return False
    return not is_range(other) or (
        parse_range(host).prefix_length <= parse_range(other).prefix_length
    )


def applies_to(rule: AccessRule, name: str) -> bool:
    """Return whether the pattern of an ACL matches a name."""
    if rule.pattern_type == "prefixed":
        return name.startswith(rule.resource_name)
    return rule.resource_name in {name, WILDCARD}


def common_name(first: AccessRule, second: AccessRule) -> str | None:
    """Return the narrower of two patterns of names if the other one contains it, or None."""
    if first.resource_type != second.resource_type:
        return None
    for narrow, wide in ((first, second), (second, first)):
        is_all = wide.pattern_type == "literal" and wide.resource_name == WILDCARD
        if is_all or _is_within(narrow, wide):
            return narrow.resource_name
    return None


def _is_within(narrow: AccessRule, wide: AccessRule) -> bool:
    if narrow.pattern_type == "literal" and narrow.resource_name == WILDCARD:
        return False
    if narrow.pattern_type == "prefixed" and wide.pattern_type != "prefixed":
        return False
    return applies_to(wide, narrow.resource_name)
