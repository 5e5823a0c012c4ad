"""ACLs that are removed from the console, and the access that remains."""

from __future__ import annotations

import pytest

from tests.support.console.changes import made, prepared
from tests.support.console.guarded_cluster import OPEN_BY_DEFAULT, guarded_cluster
from wirebroker.client.security.acls import AccessRule, RuleFilter, create_acls, list_acls
from wirebroker.console.changes.change import ChangeError

SERVICE = "User:billing"
READ = AccessRule("topic", "orders", "literal", SERVICE, "*", "read", "allow")
NO_EFFECT = "no user gains or loses anything now: other ACLs or super.users already decide"
CAUSE = "another ACL, super.users or allow.everyone.if.no.acl.found allows it"


async def rules_of(collector) -> set[AccessRule]:
    return set(await list_acls(collector.client, RuleFilter()))


@pytest.mark.parametrize(
    ("let", "stop", "values", "count"),
    [
        ("let-consume", "stop-consume", {"group": "billing"}, 3),
        ("let-produce", "stop-produce", {"transactional_id": "billing"}, 5),
    ],
)
async def test_acls_of_a_producer_or_consumer_are_removed(tmp_path, let, stop, values, count):
    async with guarded_cluster(tmp_path) as c:
        others = {READ._replace(principal="User:other"), READ._replace(host="10.0.0.1")}
        await create_acls(c.client, list(others))
        fields = {"principal": SERVICE, "topic": "orders", **values}
        await made(c, let, **fields)
        plan = await prepared(c, stop, **fields)
        assert sum(line.startswith("- allow User:billing") for line in plan.lines) == count
        assert any(line.startswith("User:billing loses") for line in plan.lines)
        assert await plan.apply() == f"{count} ACLs removed"
        assert await rules_of(c) == others
        with pytest.raises(ChangeError, match="User:billing has none of these ACLs"):
            await prepared(c, stop, **fields)


async def test_acls_that_do_not_exist_are_named_when_a_service_is_stopped(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        await create_acls(c.client, [READ])
        plan = await prepared(c, "stop-consume", principal=SERVICE, topic="orders", group="g")
        assert plan.lines[0] == "- allow User:billing to read on topic orders from any host"
        assert plan.lines[1].startswith("does not exist: allow User:billing to describe")
        assert await plan.apply() == "1 ACL removed"


@pytest.mark.parametrize(
    ("kind", "values", "summary"),
    [
        (
            "stop-produce",
            {"topic": "orders"},
            "Remove the producer ACLs of User:billing on topic orders",
        ),
        (
            "stop-produce",
            {"topic": "ord", "pattern_type": "prefixed"},
            "Remove the producer ACLs of User:billing on all topics that begin with ord",
        ),
        (
            "stop-consume",
            {"topic": "*", "group": "g1"},
            "Remove the consumer ACLs of User:billing on all topics and group g1",
        ),
    ],
)
async def test_the_summary_names_the_acls(tmp_path, kind, values, summary):
    async with guarded_cluster(tmp_path) as c:
        fields = {"principal": SERVICE, **values}
        await made(c, kind.replace("stop", "let"), **fields)
        assert (await prepared(c, kind, **fields)).summary == summary


async def test_a_producer_that_another_acl_allows_can_still_write(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        prefixed = READ._replace(resource_name="ord", pattern_type="prefixed", operation="write")
        await create_acls(c.client, [prefixed])
        fields = {"principal": SERVICE, "topic": "orders"}
        await made(c, "let-produce", **fields)
        plan = await prepared(c, "stop-produce", **fields)
        assert "User:billing loses create on topic orders" in plan.lines
        assert plan.warnings == (f"User:billing can still write to topic orders: {CAUSE}",)


async def test_removing_acls_of_a_super_user_has_no_effect(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        fields = {"principal": "User:ANONYMOUS", "topic": "orders"}
        await made(c, "let-produce", **fields)
        plan = await prepared(c, "stop-produce", **fields)
        assert plan.warnings == (
            NO_EFFECT,
            f"User:ANONYMOUS can still write to topic orders: {CAUSE}",
        )


async def test_a_consumer_loses_its_topic_in_all_groups(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        fields = {"principal": SERVICE, "topic": "orders", "pattern_type": "prefixed"}
        for group in ("g1", "g2"):
            await made(c, "let-consume", **fields, group=group)
        plan = await prepared(c, "stop-consume", **fields, group="g1")
        assert plan.warnings == (
            "User:billing can no longer read topics orders, orders-archive in any group",
        )
        assert {rule.resource_name for rule in await rules_of(c)} == {"orders", "g1", "g2"}
        await plan.apply()
        assert {rule.resource_name for rule in await rules_of(c)} == {"g2"}


async def test_a_topic_without_acls_stays_open_to_a_producer(tmp_path):
    async with guarded_cluster(tmp_path, OPEN_BY_DEFAULT) as c:
        fields = {"principal": SERVICE, "topic": "orders"}
        await made(c, "let-produce", **fields)
        plan = await prepared(c, "stop-produce", **fields)
        assert plan.warnings[-1] == f"User:billing can still write to topic orders: {CAUSE}"


async def test_exactly_one_acl_is_removed_even_without_effect(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        prefixed = READ._replace(pattern_type="prefixed")
        elsewhere = READ._replace(host="10.0.0.1")
        await create_acls(c.client, [READ, prefixed, elsewhere])
        plan = await prepared(c, "remove-acl", **READ._asdict())
        assert plan.lines[0] == "- allow User:billing to read on topic orders from any host"
        assert plan.warnings == (NO_EFFECT,)
        assert await plan.apply() == "1 ACL removed"
        assert await rules_of(c) == {prefixed, elsewhere}
        plan = await prepared(c, "remove-acl", **prefixed._asdict())
        assert "User:billing loses read, describe on 2 topics: orders, orders-archive" in plan.lines


async def test_all_acls_of_a_principal_are_removed(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        other = READ._replace(principal="User:other")
        await create_acls(c.client, [READ, READ._replace(operation="write"), other])
        plan = await prepared(c, "remove-acls-of", principal=SERVICE)
        assert "User:billing loses read, write, describe on topic orders" in " ".join(plan.lines)
        assert await plan.apply() == "2 ACLs removed"
        assert await rules_of(c) == {other}


async def test_an_acl_that_was_removed_meanwhile_is_refused(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        await create_acls(c.client, [READ])
        await prepared(c, "remove-acl", **READ._asdict())
        await made(c, "remove-acls-of", principal=SERVICE)
        with pytest.raises(ChangeError, match="removed meanwhile"):
            await prepared(c, "remove-acl", **READ._asdict())
