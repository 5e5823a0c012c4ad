"""ACLs that are added and removed from the console."""

from __future__ import annotations

import pytest

from tests.support.console.changes import made, prepared
from tests.support.console.guarded_cluster import OPEN_BY_DEFAULT, guarded_cluster
from wirebroker.client.errors import ClientError
from wirebroker.client.security.acls import AccessRule, RuleFilter, create_acls, list_acls
from wirebroker.client.topics.topics import create_topics
from wirebroker.console.access.brokers_access import BrokersAccess
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.kinds import acl_plans

SERVICE = "User:billing"
READ = AccessRule("topic", "orders", "literal", SERVICE, "*", "read", "allow")
EVIL = "User:<script>alert(1)</script>\"'; rm -rf /"


async def rules_of(collector) -> set[AccessRule]:
    return set(await list_acls(collector.client, RuleFilter()))


async def test_an_acl_is_planned_and_added(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        plan = await prepared(c, "add-acl", principal=SERVICE, resource_name="orders")
        assert (
            plan.summary == "Add an ACL: allow User:billing to read on topic orders from any host"
        )
        assert plan.lines == (
            "+ allow User:billing to read on topic orders from any host",
            "User:billing gains read, describe on topic orders",
        )
        assert plan.warnings == ()
        assert await rules_of(c) == set()
        assert await plan.apply() == "1 ACL added"
        assert await rules_of(c) == {READ}


@pytest.mark.parametrize(
    ("values", "gained"),
    [
        ({"operation": "alter"}, "describe, alter on topic orders"),
        ({"operation": "alter_configs"}, "describe_configs, alter_configs on topic orders"),
        (
            {"resource_name": "orders", "pattern_type": "prefixed"},
            "read, describe on 2 topics: orders, orders-archive",
        ),
        (
            {"resource_name": "*", "operation": "write"},
            "write, describe on 3 topics: orders, orders-archive, payments",
        ),
        (
            {"resource_type": "group", "resource_name": "billing", "operation": "all"},
            "read, describe, delete, describe_configs, alter_configs on group billing",
        ),
        (
            {"resource_type": "cluster", "resource_name": "kafka-cluster", "operation": "create"},
            "create on cluster kafka-cluster",
        ),
        (
            {"resource_type": "user", "resource_name": "User:a", "operation": "create_tokens"},
            "create_tokens on user User:a",
        ),
    ],
    ids=["implied", "configs", "prefix", "all-topics", "all-operations", "cluster", "tokens"],
)
async def test_a_plan_says_what_the_principal_gains(tmp_path, values, gained):
    async with guarded_cluster(tmp_path) as c:
        values = {"principal": SERVICE, "resource_name": "orders"} | values
        plan = await prepared(c, "add-acl", **values)
        assert plan.lines[-1] == f"User:billing gains {gained}"


async def test_a_denial_says_what_is_lost_and_an_overruled_acl_that_it_changes_nothing(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        await create_acls(c.client, [READ])
        plan = await prepared(
            c,
            "add-acl",
            principal=SERVICE,
            resource_name="orders",
            permission="deny",
            operation="all",
        )
        assert plan.lines[-1] == "User:billing loses read, describe on topic orders"
        await plan.apply()
        plan = await prepared(
            c, "add-acl", principal=SERVICE, resource_name="orders", operation="write"
        )
        assert plan.lines == ("+ allow User:billing to write on topic orders from any host",)
        assert "no user gains or loses anything now" in plan.warnings[0]


async def test_a_plan_says_that_brokers_use_another_authorizer(tmp_path, monkeypatch):
    async def another(_collector: object) -> BrokersAccess:
        return BrokersAccess(is_standard=False, super_users=frozenset(), allows_without_rules=False)

    monkeypatch.setattr(acl_plans, "brokers_access", another)
    async with guarded_cluster(tmp_path) as c:
        plan = await prepared(c, "add-acl", principal=SERVICE, resource_name="orders")
        assert "the brokers use another authorizer" in plan.warnings[0]


async def test_the_first_acl_of_a_resource_takes_it_from_everyone_else(tmp_path):
    async with guarded_cluster(tmp_path, OPEN_BY_DEFAULT) as c:
        plan = await prepared(c, "add-acl", principal=SERVICE, resource_name="orders")
        assert "User:billing loses write" in plan.lines[-1]
        (warning,) = plan.warnings
        assert warning.startswith("all other users lose read, write")
        await plan.apply()
        plan = await prepared(c, "remove-acl", principal=SERVICE, resource_name="orders")
        assert plan.warnings[0].startswith("all other users gain read, write")


async def test_a_topic_that_is_newer_than_the_snapshot_is_not_missing(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        await create_topics(c.client, {"fresh": 1}, configs={})
        assert "fresh" not in c.snapshot.topics
        plan = await prepared(c, "let-produce", principal=SERVICE, topic="fresh")
        assert not [warning for warning in plan.warnings if "there is no topic" in warning]


async def test_a_missing_topic_is_named_with_a_suggestion(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        plan = await prepared(c, "add-acl", principal=SERVICE, resource_name="order")
        assert plan.warnings == ("there is no topic order yet; did you mean orders?",)
        plan = await prepared(
            c, "add-acl", principal=SERVICE, resource_name="x-", pattern_type="prefixed"
        )
        assert plan.warnings == ("no topic begins with x- yet",)


@pytest.mark.parametrize(
    ("kind", "values", "rules"),
    [
        (
            "let-produce",
            {"transactional_id": "tx-1"},
            {
                ("topic", "orders", "write"),
                ("topic", "orders", "describe"),
                ("topic", "orders", "create"),
                ("transactional_id", "tx-1", "write"),
                ("transactional_id", "tx-1", "describe"),
            },
        ),
        (
            "let-consume",
            {"group": "readers"},
            {
                ("topic", "orders", "read"),
                ("topic", "orders", "describe"),
                ("group", "readers", "read"),
            },
        ),
    ],
)
async def test_a_service_gets_the_acls_that_kafkas_tool_gives_it(tmp_path, kind, values, rules):
    async with guarded_cluster(tmp_path) as c:
        given = {"principal": SERVICE, "topic": "orders", **values}
        assert await made(c, kind, **given) == f"{len(rules)} ACLs added"
        assert {(r.resource_type, r.resource_name, r.operation) for r in await rules_of(c)} == rules
        assert {r.pattern_type for r in await rules_of(c)} == {"literal"}


async def test_existing_acls_are_not_added_again(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        await create_acls(c.client, [READ])
        plan = await prepared(c, "let-consume", principal=SERVICE, topic="orders", group="g")
        assert (
            "exists already: allow User:billing to read on topic orders from any host" in plan.lines
        )
        assert await plan.apply() == "2 ACLs added"
        with pytest.raises(ChangeError, match="exist already"):
            await prepared(c, "let-consume", principal=SERVICE, topic="orders", group="g")


@pytest.mark.parametrize(
    ("kind", "values", "field", "message"),
    [
        ("add-acl", {"principal": "billing"}, "principal", "write User:NAME"),
        ("add-acl", {"principal": "User:"}, "principal", "write User:NAME"),
        ("add-acl", {"resource_name": "kafka-cluster"}, "resource_name", "name of the topic"),
        ("add-acl", {"resource_type": "cluster"}, "resource_name", "the only cluster is"),
        (
            "add-acl",
            {"resource_type": "group", "operation": "write"},
            "operation",
            "a group has no operation write: use all, read",
        ),
        ("let-produce", {"principal": "x"}, "principal", "is not a principal"),
        (
            "add-acl",
            {"resource_name": "*", "pattern_type": "prefixed"},
            "resource_name",
            "means all only with exact names",
        ),
        ("let-produce", {"topic": "*", "pattern_type": "prefixed"}, "topic", "only with exact"),
        (
            "let-produce",
            {"transactional_id": "*", "pattern_type": "prefixed"},
            "transactional_id",
            "only with exact",
        ),
        (
            "let-consume",
            {"topic": "orders", "group": "*", "pattern_type": "prefixed"},
            "group",
            "only with exact",
        ),
        ("remove-acls-of", {"principal": "x"}, "principal", "is not a principal"),
        ("remove-acls-of", {}, None, "no such ACL"),
    ],
)
async def test_wrong_values_are_refused(tmp_path, kind, values, field, message):
    given = {"add-acl": {"resource_name": "orders"}, "let-produce": {"topic": "orders"}}
    async with guarded_cluster(tmp_path) as c:
        with pytest.raises(ChangeError, match=message) as refused:
            await prepared(c, kind, **{"principal": SERVICE, **given.get(kind, {}), **values})
        assert refused.value.field == field


async def test_hostile_names_are_quoted_in_the_command(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        plan = await prepared(c, "add-acl", principal=EVIL, resource_name="orders")
        assert f"'{EVIL}'".replace("\"'", "\"'\"'\"'") in plan.command
        assert await plan.apply() == "1 ACL added"
        assert {rule.principal for rule in await rules_of(c)} == {EVIL}


async def test_a_cluster_without_an_authorizer_says_what_to_do(tmp_path):
    async with guarded_cluster(tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as c:
        with pytest.raises(ClientError, match=r"no authorizer is configured"):
            await prepared(c, "add-acl", principal=SERVICE, resource_name="orders")
