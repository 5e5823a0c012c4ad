"""Who gains and loses what by a change of ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from wirebroker.client.security.acls import AccessRule
from wirebroker.console.access.acl_decisions import AclDecisions
from wirebroker.console.access.acl_effects import MOST_OTHERS, AclEffects, effects_of
from wirebroker.console.access.acl_overlap import common_host, common_name, common_principal
from wirebroker.console.access.brokers_access import BrokersAccess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.console.model.snapshot import ClusterSnapshot

ALICE = AccessRule("topic", "orders", "literal", "User:alice", "*", "read", "allow")
EVERYONE = ALICE._replace(principal="User:*")
DENY_ALL = EVERYONE._replace(permission="deny", operation="all")
HOST = "10.0.0.5"


class CountedName(str):
    """A name that counts how often its start is compared."""

    __slots__ = ()
    compared = 0

    def startswith(self, *prefix: Any) -> bool:
        CountedName.compared += 1
        return super().startswith(*prefix)


class FakeSnapshot:
    """Topics and groups of a cluster."""

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = dict.fromkeys(topics)
        self.groups: dict[str, None] = {}


def effects(
    existing: Sequence[AccessRule],
    *,
    added: Sequence[AccessRule] = (),
    removed: Sequence[AccessRule] = (),
    topics: Sequence[str] = ("orders", "payments"),
    allows_without_rules: bool | None = False,
) -> AclEffects:
    decisions = AclDecisions(
        BrokersAccess(
            is_standard=True, super_users=frozenset(), allows_without_rules=allows_without_rules
        )
    )
    for rule in existing:
        decisions.add(rule)
    snapshot = cast("ClusterSnapshot", FakeSnapshot(topics))
    return effects_of(decisions, snapshot, existing, added=added, removed=removed)


@pytest.mark.parametrize(
    ("existing", "added", "removed", "gains", "losses"),
    [
        ([ALICE], [DENY_ALL], [], (), ("User:alice loses read, describe on topic orders",)),
        (
            [ALICE, DENY_ALL],
            [],
            [DENY_ALL],
            ("User:alice gains read, describe on topic orders",),
            (),
        ),
        (
            [ALICE],
            [DENY_ALL._replace(resource_name="*")],
            [],
            (),
            ("User:alice loses read, describe on topic orders",),
        ),
        (
            [ALICE._replace(pattern_type="prefixed", resource_name="ord")],
            [DENY_ALL],
            [],
            (),
            ("User:alice loses read, describe on topic orders",),
        ),
        (
            [ALICE._replace(host=HOST)],
            [ALICE._replace(permission="deny", operation="all")],
            [],
            (),
            (f"User:alice from {HOST} loses read, describe on topic orders",),
        ),
        (
            [ALICE._replace(host=HOST)],
            [DENY_ALL._replace(host="10.0.0.0/8")],
            [],
            (),
            (f"User:alice from {HOST} loses read, describe on topic orders",),
        ),
        (
            [ALICE],
            [DENY_ALL._replace(host="10.0.0.0/8")],
            [],
            (),
            ("User:alice from 10.0.0.0/8 loses read, describe on topic orders",),
        ),
        (
            [EVERYONE._replace(host=HOST)],
            [ALICE._replace(permission="deny")],
            [],
            (),
            (f"User:alice from {HOST} loses read on topic orders",),
        ),
        ([ALICE._replace(resource_name="payments")], [DENY_ALL], [], (), ()),
        ([ALICE._replace(host="192.168.0.1")], [DENY_ALL._replace(host="10.0.0.0/8")], [], (), ()),
    ],
    ids=[
        "deny-everyone",
        "remove-the-deny",
        "deny-all-topics",
        "deny-within-a-prefix",
        "deny-any-host",
        "deny-a-range",
        "deny-a-range-of-any-host",
        "deny-one-of-everyone",
        "other-topic",
        "other-host",
    ],
)
def test_users_of_overlapping_acls_are_compared(existing, added, removed, gains, losses):
    answer = effects(existing, added=added, removed=removed)
    assert (answer.gains, answer.losses) == (gains, losses)
    assert answer.is_complete


def test_the_names_of_acls_come_before_other_resources():
    topics = [f"a{number}" for number in range(200)] + ["orders"]
    denial = DENY_ALL._replace(resource_name="*")
    answer = effects([ALICE], added=[denial], topics=topics)
    assert answer.losses == ("User:alice loses read, describe on topic orders",)
    assert not answer.is_complete


def test_what_was_not_compared_is_said():
    users = [ALICE._replace(principal=f"User:u{number}") for number in range(MOST_OTHERS + 1)]
    answer = effects(users, added=[DENY_ALL])
    assert len(answer.losses) == MOST_OTHERS
    assert "more may change" in answer.warnings[-1]
    assert not answer.is_complete


def test_resources_of_several_changed_acls_are_cut_together():
    """Each ACL concerns 40 topics; all of `a` and ten of `b` are shared with existing ACLs."""
    topics = [f"{prefix}{number:02d}" for prefix in "ab" for number in range(40)]
    existing = [ALICE._replace(resource_name=name) for name in topics[:50]]
    added = [ALICE._replace(resource_name=name, pattern_type="prefixed") for name in "ab"]
    answer = effects(existing, added=added, topics=topics)
    assert not answer.is_complete
    assert "more may change" in answer.warnings[-1]


@pytest.mark.parametrize("direction", ["added", "removed"])
@pytest.mark.parametrize("users", [1, 10_000])
def test_10000_prefixed_acls_are_not_compared_with_each_topic(users, direction):
    existing = [
        ALICE._replace(
            pattern_type="prefixed",
            resource_name=f"team-{number % 100}-{number:05d}",
            principal=f"User:u{number % users}",
        )
        for number in range(10_000)
    ]
    CountedName.compared = 0
    topics = [CountedName(f"team-{n % 100}-{n:05d}-events") for n in range(10_000)]
    denial = DENY_ALL._replace(pattern_type="prefixed", resource_name="team-")
    added, removed = ([denial], []) if direction == "added" else ([], existing)
    answer = effects(existing, topics=topics, added=added, removed=removed)
    assert CountedName.compared < 1_000_000  # not 100 million
    assert len(answer.losses) == (1 if users == 1 else MOST_OTHERS)
    assert "more may change" in answer.warnings[-1]


def test_unknown_outcomes_are_not_complete():
    denial = ALICE._replace(permission="deny", operation="write")
    assert not effects([], added=[denial], allows_without_rules=None).is_complete


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("*", "*", "*"),
        ("*", HOST, HOST),
        (HOST, "10.0.0.6", None),
        ("10.0.0.0/8", HOST, HOST),
        ("10.0.0.0/8", "10.0.0.0/24", "10.0.0.0/24"),
        ("10.0.0.0/8", "192.168.0.0/16", None),
        ("*", "10.0.0.0/8", "10.0.0.0/8"),
        ("0.0.0.0/0", HOST, HOST),
        ("nonsense/x", HOST, None),
        ("10.0.0.0/8", "nonsense/x", None),
    ],
)
def test_hosts_have_the_narrower_one_in_common(first, second, common):
    assert common_host(first, second) == common
    assert common_host(second, first) == common


def test_principals_have_the_narrower_one_in_common():
    assert common_principal("User:*", "User:a") == "User:a"
    assert common_principal("User:a", "User:*") == "User:a"
    assert common_principal("User:a", "User:b") is None


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        (("orders", "literal"), ("*", "literal"), "orders"),
        (("ord", "prefixed"), ("orders", "literal"), "orders"),
        (("ord", "prefixed"), ("orders-", "prefixed"), "orders-"),
        (("ord", "prefixed"), ("*", "literal"), "ord"),
        (("ord", "prefixed"), ("payments", "literal"), None),
        (("orders", "literal"), ("payments", "literal"), None),
        (("*", "literal"), ("*", "literal"), "*"),
    ],
)
def test_patterns_have_the_narrower_one_in_common(first, second, common):
    rules = [
        ALICE._replace(resource_name=name, pattern_type=pattern)
        for name, pattern in (first, second)
    ]
    assert common_name(rules[0], rules[1]) == common
    assert common_name(rules[1], rules[0]) == common
