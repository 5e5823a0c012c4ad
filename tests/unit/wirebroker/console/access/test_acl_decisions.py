"""Whether a principal may do something, and which ACL decides."""

from __future__ import annotations

import pytest

from tests.support.console.guarded_cluster import GUARDED, OPEN_BY_DEFAULT, guarded_cluster
from wirebroker.client.security.acls import AccessRule, create_acls
from wirebroker.console.access.acl_decisions import (
    AccessOutcome,
    AccessQuestion,
    AclDecisions,
    acl_decisions,
)
from wirebroker.console.access.brokers_access import BrokersAccess, brokers_access, of_configs

CLOSED = BrokersAccess(is_standard=True, super_users=frozenset(), allows_without_rules=False)
READ = AccessRule("topic", "orders", "literal", "User:a", "*", "read", "allow")
ASK = AccessQuestion("User:a", "*", "read", "topic", "orders")


def decisions(*rules: AccessRule, brokers: BrokersAccess = CLOSED) -> AclDecisions:
    made = AclDecisions(brokers)
    for rule in rules:
        made.add(rule)
    return made


@pytest.mark.parametrize(
    ("rules", "question", "outcome", "deciding"),
    [
        ([READ], ASK, "allowed", READ),
        ([READ], ASK._replace(operation="describe"), "allowed", READ),
        ([READ], ASK._replace(operation="write"), "denied", None),
        ([READ], ASK._replace(principal="User:b"), "denied", None),
        ([READ], ASK._replace(resource_name="orders-2"), "denied", None),
        (
            [READ._replace(pattern_type="prefixed")],
            ASK._replace(resource_name="orders-2"),
            "allowed",
            READ._replace(pattern_type="prefixed"),
        ),
        ([READ._replace(resource_name="*")], ASK, "allowed", READ._replace(resource_name="*")),
        ([READ._replace(principal="User:*")], ASK, "allowed", READ._replace(principal="User:*")),
        (
            [READ, READ._replace(permission="deny", principal="User:*")],
            ASK,
            "denied",
            READ._replace(permission="deny", principal="User:*"),
        ),
        (
            [READ._replace(permission="deny"), READ],
            ASK._replace(operation="describe"),
            "allowed",
            READ,
        ),
        ([READ._replace(host="10.0.0.1")], ASK, "denied", None),
        (
            [READ._replace(host="10.0.0.0/8")],
            ASK._replace(host="10.1.2.3"),
            "allowed",
            READ._replace(host="10.0.0.0/8"),
        ),
        ([READ._replace(operation="all")], ASK, "allowed", READ._replace(operation="all")),
    ],
    ids=[
        "literal",
        "implied",
        "other-operation",
        "other-user",
        "other-name",
        "prefix",
        "wildcard",
        "everyone",
        "deny-wins",
        "deny-implies-nothing",
        "other-host",
        "range",
        "all-operations",
    ],
)
def test_acls_decide_by_kafkas_rules(rules, question, outcome, deciding):
    answer = decisions(*rules).decide(question)
    assert (answer.outcome.value, answer.rule) == (outcome, deciding)
    assert answer.has_rules is (outcome == "allowed" or question.resource_name == "orders")


@pytest.mark.parametrize(
    ("brokers", "outcome", "reason"),
    [
        (CLOSED, "denied", "and allow.everyone.if.no.acl.found=false"),
        (CLOSED._replace(allows_without_rules=True), "allowed", "acl.found=true"),
        (CLOSED._replace(allows_without_rules=None), "unknown", "which the brokers do not show"),
        (CLOSED._replace(super_users=frozenset({"User:a"})), "allowed", "is in super.users"),
    ],
)
def test_without_acls_the_brokers_configs_decide(brokers, outcome, reason):
    answer = decisions(brokers=brokers).decide(ASK)
    assert (answer.outcome.value, answer.rule) == (outcome, None)
    assert reason in answer.reason


def test_acls_of_a_newer_kafka_are_counted_not_guessed():
    made = decisions(READ._replace(operation="unknown(99)"))
    assert made.unknown_count == 1
    assert made.decide(ASK).outcome is AccessOutcome.DENIED


def test_changes_apply_only_within_their_context():
    made = decisions(READ)
    write = READ._replace(operation="write")
    with made.changed([write], [READ]):
        assert made.decide(ASK._replace(operation="write")).outcome is AccessOutcome.ALLOWED
        assert made.decide(ASK).outcome is AccessOutcome.DENIED
    assert made.decide(ASK._replace(operation="write")).outcome is AccessOutcome.DENIED
    assert made.decide(ASK).rule == READ


@pytest.mark.parametrize(
    ("values", "access"),
    [
        ({}, BrokersAccess(None, frozenset(), allows_without_rules=False)),
        (
            {"authorizer.class.name": "my:Own", "super.users": "User:a;User:b"},
            BrokersAccess(
                is_standard=False,
                super_users=frozenset({"User:a", "User:b"}),
                allows_without_rules=False,
            ),
        ),
        (
            {"super.users": None, "allow.everyone.if.no.acl.found": None},
            BrokersAccess(None, None, None),
        ),
        (
            {"super.users": "nonsense", "allow.everyone.if.no.acl.found": "TRUE"},
            BrokersAccess(None, None, allows_without_rules=True),
        ),
    ],
    ids=["unset", "set", "hidden", "malformed"],
)
def test_configs_say_how_brokers_decide(values, access):
    assert of_configs(values) == access


@pytest.mark.parametrize(
    ("settings", "outcome"), [(GUARDED, "denied"), (OPEN_BY_DEFAULT, "allowed")]
)
async def test_the_configs_of_a_running_broker_are_read(tmp_path, settings, outcome):
    async with guarded_cluster(tmp_path, settings) as c:
        access = await brokers_access(c)
        assert access.is_standard is True
        await create_acls(c.client, [READ])
        made = await acl_decisions(c)
        assert made.decide(ASK).rule == READ
        other = made.decide(ASK._replace(resource_name="payments"))
        expected = "unknown" if access.allows_without_rules is None else outcome
        assert other.outcome.value == expected
