"""Whatever a cluster contains, it is text on the page."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.found_records import chunks_of, found_record
from tests.unit.wirebroker.console.pages.conftest import Site
from wirebroker.client.configs.quotas import EntityQuotas
from wirebroker.client.security.acls import AccessRule
from wirebroker.client.security.users import ScramUser
from wirebroker.console.model import details
from wirebroker.console.model.snapshot import ClusterProblem, ProblemLevel
from wirebroker.console.pages import messages
from wirebroker.console.records.queries import RecordPage

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}/../?&#\u202e"
NAME = quote(EVIL)


@pytest.fixture
def hostile(answers) -> Site:
    (plain,) = fake.group("x").members or ()
    member = plain._replace(member_id=EVIL, client_id=EVIL, host=EVIL)
    group = fake.group(EVIL, topic_name=EVIL, members=(member,), stuck=EVIL, state=EVIL)
    problem = ClusterProblem(ProblemLevel.ERROR, "group", EVIL, EVIL, (EVIL,))
    record = found_record(topic=EVIL, key=EVIL.encode(), value=EVIL.encode(), header=EVIL)
    answers(details, "group", group)
    answers(details, "configs", [fake.config(EVIL, EVIL, is_set=True, documentation=EVIL)])
    answers(details, "acls", [AccessRule("topic", EVIL, "literal", EVIL, EVIL, "read", "allow")])
    answers(details, "users", [ScramUser(EVIL, EVIL, 4096)])
    answers(details, "quotas", [EntityQuotas({"user": EVIL}, {EVIL: 1.0})])
    answers(messages, "read_page", RecordPage((record,), {}, (EVIL,)))
    answers(messages, "read_record", record)
    return Site(
        fake.snapshot(
            topics=[fake.topic(EVIL, groups=(EVIL,))],
            groups=[group],
            problems=(problem,),
            brokers={1: fake.broker(1, host=EVIL, rack=EVIL, version=EVIL)},
            cluster_id=EVIL,
            hidden=EVIL,
        )
    )


@pytest.mark.parametrize(
    "path",
    [
        "",
        "brokers",
        "broker?id=1",
        "topics",
        f"topics?q={NAME}&sort={NAME}&page={NAME}",
        f"topic?name={NAME}",
        f"topic/configs?name={NAME}",
        f"topic/messages?name={NAME}",
        f"topic/messages?name={NAME}&partition={NAME}&jsonpath={NAME}&text={NAME}",
        f"topic/record?name={NAME}&partition=0&offset=1",
        "groups",
        f"group?name={NAME}",
        "acls",
        "users",
        "quotas",
        "none",
    ],
)
async def test_hostile_names_do_not_become_markup(hostile: Site, path: str):
    reply = await hostile.get(f"/c/dev/{path}")
    assert reply.status in {200, 404}
    assert "<script>alert" not in reply.text
    assert "<img src=x" not in reply.text
    assert "49/../" not in reply.text


async def test_links_to_hostile_names_lead_back_to_them(hostile: Site):
    page = await hostile.page("/c/dev/topics")
    address = page.partition('<th scope="row" data-label="Topic"><a href="')[2].partition('"')[0]
    assert "&lt;script&gt;" in await hostile.page(address.replace("&amp;", "&"))


async def test_topic_names_cannot_add_headers_to_a_download(hostile: Site, monkeypatch):
    monkeypatch.setattr(messages, "downloaded", lambda *_: chunks_of(b"a,b\r\n"))
    page = await hostile.get(f"/c/dev/topic/download?name={NAME}&form=csv&partition=0")
    assert "\n" not in page.headers.get("content-disposition", "")
    assert '"' not in page.headers["content-disposition"].partition('filename="')[2][:-1]
