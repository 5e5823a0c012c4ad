"""Pages that ask the cluster: configs, groups, transactions, ACLs, users, quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.fake_cluster import config
from wirebroker.client.configs.configs import ConfigSynonym
from wirebroker.client.configs.quotas import EntityQuotas
from wirebroker.client.errors import ClientError
from wirebroker.client.security.acls import AccessRule
from wirebroker.client.security.users import ScramUser
from wirebroker.console.model import details

if TYPE_CHECKING:
    from tests.unit.wirebroker.console.pages.conftest import Site

_DEFAULT = ConfigSynonym("DEFAULT_CONFIG", "log.retention.ms", "604800000")
_SET = ConfigSynonym("DYNAMIC_TOPIC_CONFIG", "retention.ms", "1000")
CONFIGS = [
    config("retention.ms", "1000", is_set=True, synonyms=(_SET, _DEFAULT), documentation="Age."),
    config("cleanup.policy", "delete"),
    config("ssl.key", None, is_sensitive=True),
]


@pytest.mark.parametrize("path", ["topic/configs?name=orders", "broker?id=1"])
async def test_configs_that_are_set_come_with_documentation(site: Site, answers, path):
    answers(details, "configs", CONFIGS)
    page = await site.page(f"/c/dev/{path}")
    assert "retention.ms" in page
    assert "Age." in page
    assert "otherwise <code>604800000</code>" in page
    assert "cleanup.policy" not in page
    assert "cleanup.policy" in await site.page(f"/c/dev/{path}&all=1")


async def test_configs_are_found_by_a_part_of_their_name(site: Site, answers):
    answers(details, "configs", CONFIGS)
    page = await site.page("/c/dev/broker?id=1&config=CLEAN")
    assert "cleanup.policy" in page
    assert "retention.ms" not in page


async def test_secret_configs_are_hidden(site: Site, answers):
    answers(details, "configs", CONFIGS)
    assert "hidden</span>" in await site.page("/c/dev/broker?id=1&config=ssl.key")


@pytest.mark.parametrize(
    ("path", "function"),
    [
        ("topic/configs?name=orders", "configs"),
        ("transactions", "transactions"),
        ("reassignments", "reassignments"),
        ("acls", "acls"),
        ("users", "users"),
        ("quotas", "quotas"),
    ],
)
async def test_a_refusal_is_shown_in_the_page(site: Site, answers, path, function):
    answers(details, function, ClientError("this user may not describe <the> cluster"))
    page = await site.page(f"/c/dev/{path}")
    assert "This user may not describe &lt;the&gt; cluster." in page
    assert "Overview" in page


async def test_a_slow_cluster_does_not_hold_the_page(site: Site, answers):
    answers(details, "acls", TimeoutError())
    page = await site.page("/c/dev/acls")
    assert "did not respond within 10 s; reload" in page


async def test_acls_are_ordered_by_principal_or_resource(site: Site, answers):
    rules = [
        AccessRule("topic", "b", "literal", "User:zoe", "*", "read", "allow"),
        AccessRule("topic", "c", "prefixed", "User:adam", "10.0.0.1", "write", "deny"),
    ]
    answers(details, "acls", rules)
    page = await site.page("/c/dev/acls")
    assert page.index("User:adam") < page.index("User:zoe")
    assert "prefix" in page
    page = await site.page("/c/dev/acls?by=resource")
    assert page.index("User:zoe") < page.index("User:adam")
    assert "User:zoe" not in await site.page("/c/dev/acls?q=adam")


async def test_users_link_to_their_acls(site: Site, answers):
    answers(details, "users", [ScramUser("anna", "SCRAM-SHA-512", 8192)])
    page = await site.page("/c/dev/users")
    assert "8,192" in page
    assert "/c/dev/acls?q=User%3Aanna" in page


async def test_quotas_have_a_column_for_each_key(site: Site, answers):
    quota = EntityQuotas({"user": "anna"}, {"producer_byte_rate": 1048576.0})
    answers(details, "quotas", [quota])
    page = await site.page("/c/dev/quotas")
    assert "producer_byte_rate" in page
    assert "1 MiB/s" in page


async def test_a_group_shows_why_it_is_stuck_and_what_to_do(site: Site, answers):
    answers(details, "group", fake.group("billing", stuck="Member m-1 does not respond."))
    page = await site.page("/c/dev/group?name=billing")
    assert "Member m-1 does not respond." in page
    assert "Restart it." in page
    assert "it grows" in page
    assert "start=offset&amp;offset=60" in page


async def test_a_group_that_cannot_be_read_is_shown_as_it_was(site: Site, answers):
    answers(details, "group", ClientError("the coordinator does not respond"))
    page = await site.page("/c/dev/group?name=billing")
    assert "The coordinator does not respond." in page
    assert "member-1" in page


async def test_a_group_that_does_not_exist_is_not_found(site: Site, answers):
    answers(details, "group", ClientError("there is no such group"))
    reply = await site.get("/c/dev/group?name=none")
    assert reply.status == 404
    assert "there is no such group" in reply.text


async def test_loggers_are_filtered_sorted_and_linked_to_their_change(site: Site, answers):
    loggers = [config("root", "INFO"), config("kafka.log", "DEBUG"), config("<b>", "WARN")]
    answers(details, "configs", loggers)
    page = await site.page("/c/dev/broker/loggers?id=1&sort=level")
    assert page.index("kafka.log") < page.index(">root<") < page.index("&lt;b&gt;")
    assert "broker=1&amp;set=kafka.log%3DDEBUG" in page
    assert "broker=1&amp;unset=kafka.log" in page
    assert "unset=root" not in page
    page = await site.page("/c/dev/broker/loggers?id=1&q=KAFKA")
    assert "1 to 1 of 1 loggers" in page
    assert '<input type="hidden" name="id" value="1">' in page
    assert (await site.get("/c/dev/broker/loggers?id=9")).status == 404


async def test_loggers_that_cannot_be_read_have_a_cause(site: Site, answers):
    answers(details, "configs", ClientError("this user may not read them"))
    assert "This user may not read them." in await site.page("/c/dev/broker/loggers?id=1")
