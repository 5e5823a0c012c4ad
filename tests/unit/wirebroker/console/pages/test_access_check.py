"""The page "may a user do something", and links to changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from wirebroker.client.errors import ClientError
from wirebroker.client.security.acls import AccessRule
from wirebroker.console.access.acl_decisions import AclDecisions
from wirebroker.console.access.brokers_access import BrokersAccess
from wirebroker.console.pages import access_check
from wirebroker.console.pages.sections import is_section_shown

if TYPE_CHECKING:
    from tests.unit.wirebroker.console.pages.conftest import Site

READ = AccessRule("topic", "orders", "literal", "User:a", "*", "read", "allow")
CLOSED = BrokersAccess(is_standard=True, super_users=frozenset(), allows_without_rules=False)
ASKED = "principal=User:a&operation=read&resource_type=topic&resource_name=orders"


@pytest.fixture
def decide(answers):
    """Return a function that sets the cluster's ACLs, and what the brokers show."""

    def set_rules(*rules: AccessRule, brokers: BrokersAccess = CLOSED) -> None:
        decisions = AclDecisions(brokers)
        for rule in rules:
            decisions.add(rule)
        answers(access_check, "acl_decisions", decisions)
        answers(access_check, "brokers_access", brokers)

    return set_rules


async def test_the_form_is_empty_at_first(site: Site):
    page = await site.page("/c/dev/acls/check")
    assert 'name="principal" value=""' in page
    assert 'aria-label="Answer"' not in page


@pytest.mark.parametrize(
    ("query", "heading", "text"),
    [
        (ASKED, "<h2>Yes</h2>", "allow User:a to read on topic orders from any host"),
        (ASKED.replace("User:a", "User:b"), "<h2>No</h2>", "no ACL allows it"),
        (ASKED.replace("=read", "=write"), "<h2>No</h2>", "may not write topic"),
        (
            "principal=User:a&operation=alter&resource_type=cluster",
            "<h2>No</h2>",
            "<code>kafka-cluster</code>",
        ),
    ],
)
async def test_the_answer_names_the_deciding_acl(site: Site, decide, query, heading, text):
    decide(READ)
    page = await site.page(f"/c/dev/acls/check?{query}")
    assert heading in page
    assert text in page


async def test_what_the_brokers_do_not_show_is_unknown(site: Site, decide):
    decide(brokers=BrokersAccess())
    page = await site.page(f"/c/dev/acls/check?{ASKED}")
    assert "<h2>Unknown</h2>" in page
    assert "It is not known whether User:a may read topic" in page
    assert "The brokers do not show super.users" in page


async def test_another_authorizer_is_named(site: Site, decide):
    decide(READ._replace(operation="unknown(77)"), brokers=CLOSED._replace(is_standard=False))
    page = await site.page(f"/c/dev/acls/check?{ASKED}")
    assert "use another authorizer" in page
    assert "not considered: 1" in page


async def test_a_denied_request_can_be_allowed(site: Site, decide):
    decide()
    page = await site.page(f"/c/dev/acls/check?{ASKED}")
    assert "/c/dev/change/add-acl?principal=User%3Aa&amp;operation=read" in page


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("principal=a&resource_name=orders", "write User:NAME"),
        ("principal=User:a", "name of the topic is missing"),
        (
            "principal=User:a&resource_type=group&resource_name=g&operation=write",
            "group has no operation write, only read, describe",
        ),
    ],
)
async def test_a_wrong_question_is_explained(site: Site, query, message):
    page = await site.page(f"/c/dev/acls/check?{query}")
    assert message in page
    assert 'aria-label="Answer"' not in page


async def test_a_refusal_of_the_cluster_is_shown(site: Site, decide, answers):
    decide()
    answers(access_check, "acl_decisions", ClientError("this user may not list <ACLs>"))
    page = await site.page(f"/c/dev/acls/check?{ASKED}")
    assert "This user may not list &lt;ACLs&gt;." in page


async def test_hostile_questions_are_text(site: Site, decide):
    decide()
    evil = "%3Cscript%3Ealert(1)%3C/script%3E%22'"
    page = await site.page(
        f"/c/dev/acls/check?principal=User:{evil}&resource_name={evil}&host={evil}"
    )
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize(
    ("topics", "properties", "shown"),
    [
        ([], {}, set()),
        (["__wirebroker-delivery"], {}, {"delivery"}),
        (["orders.dead-letters"], {}, {"delivery"}),
        (["dlq.orders"], {}, {"delivery"}),
        ([], {"wirebroker.test.url": "http://127.0.0.1:1"}, {"testing"}),
    ],
)
def test_sections_are_shown_only_if_the_cluster_has_them(topics, properties, shown):
    snapshot = fake.snapshot(topics=[fake.topic(name) for name in topics])
    collector: Any = fake.FakeCollector(snapshot)
    collector.settings = collector.settings._replace(properties=properties)
    sections = {"delivery", "testing"}
    assert {key for key in sections if is_section_shown(key, collector)} == shown
    assert is_section_shown("acls", collector)
