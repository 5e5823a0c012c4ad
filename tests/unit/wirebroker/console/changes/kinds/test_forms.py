"""Forms of changes on a broker: prefilled, shown, confirmed; links to them by role."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.collectors import snapshot_when
from tests.support.console import fake_cluster as fake
from tests.support.console.changes import records_of
from tests.support.console.found_records import found_record
from tests.support.console.requests import Browser
from tests.support.console.wrapped_app import console_in
from wirebroker.base.clock import SystemClock
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.model import details
from wirebroker.console.pages import messages
from wirebroker.console.records.queries import RecordPage
from wirebroker.console.web.app import make_app
from wirebroker.console.web_settings import WebSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.console.model.collector import Collector

EVIL = "</textarea><script>alert(1)</script>"


@contextlib.contextmanager
def browsing(collector: Any, folder, *, is_read_only: bool = False) -> Iterator[Browser]:
    settings = WebSettings(audit_log=folder / "audit.log", is_read_only=is_read_only)
    app = make_app([collector], SystemClock(), settings)
    yield Browser(app)
    console_in(app).runner.audit.close()


async def write(collector: Collector, value: bytes) -> None:
    writer = TopicWriter(collector.client, "latest", Codec.NONE)
    await writer.open()
    await writer.write([(0, (b"k", value, [("trace", b"t1")]))])


def plan_of(text: str) -> str:
    return text.partition('name="plan" value="')[2].partition('"')[0]


async def test_a_record_is_edited_and_sent_again(open_cluster, tmp_path):
    async with open_cluster() as c:
        await snapshot_when(c, lambda s: "latest" in s.topics)
        await write(c, EVIL.encode())
        with browsing(c, tmp_path) as browser:
            source = "source_topic=latest&source_partition=0&source_offset=0&topic=latest"
            page = (await browser.get(f"/c/test/change/resend-record?{source}")).text
            assert "&lt;/textarea&gt;&lt;script&gt;alert(1)" in page
            assert "<script>alert" not in page
            assert "trace=t1" in page
            form = {
                **dict(pair.split("=") for pair in source.split("&")),
                "key_form": "text",
                "key": "k",
                "value_form": "text",
                "value": "edited\r\nby a browser",
                "headers_form": "text",
                "headers": "trace=t1",
            }
            plan = await browser.send("/c/test/change/resend-record", form)
            assert "the record is changed before it is written" in plan.text
            reply = await browser.send(
                "/c/test/change/resend-record/apply", {"plan": plan_of(plan.text)}
            )
            done = await browser.follow(reply)
            assert "Stored in latest-0 at offset 1." in done.text
        (_, record) = (await records_of(c.client, "latest"))[TopicPartition("latest", 0)]
        assert record.value == b"edited\nby a browser"


@pytest.mark.parametrize("query", ["", "source_topic=latest"])
async def test_a_form_without_a_record_is_empty(open_cluster, tmp_path, query):
    async with open_cluster() as c:
        with browsing(c, tmp_path) as browser:
            reply = await browser.get(f"/c/test/change/resend-record?{query}")
            assert reply.status == 200


async def test_a_record_that_does_not_exist_is_named_in_the_form(open_cluster, tmp_path):
    async with open_cluster() as c:
        with browsing(c, tmp_path) as browser:
            source = "source_topic=latest&source_partition=0&source_offset=9&topic=latest"
            reply = await browser.get(f"/c/test/change/resend-record?{source}")
            assert reply.status == 422
            assert "There is no record with this offset." in reply.text


PAGES = {
    "topics": ["create-topic"],
    "topic?name=orders": [
        "produce-record",
        "alter-topic-configs",
        "add-partitions",
        "copy-records",
        "trim-topic",
        "empty-topic",
        "delete-topic",
    ],
    "topic/configs?name=orders": ["alter-topic-configs"],
    "topic/messages?name=orders": ["produce-record", "copy-records"],
    "topic/record?name=orders&partition=0&offset=1": ["resend-record"],
    "topics?select=1": ["create-topic"],
    "broker/loggers?id=1": ["alter-broker-loggers"],
    "group?name=billing": [
        "reset-offsets",
        "delete-offsets",
        "remove-members",
        "alter-group-configs",
        "delete-group",
    ],
    "brokers": ["alter-broker-configs", "alter-client-metrics"],
    "broker?id=1": ["alter-broker-configs"],
}


@pytest.mark.parametrize("is_read_only", [False, True])
async def test_pages_link_to_the_changes_that_the_user_may_make(
    monkeypatch, tmp_path, is_read_only
):
    async def answer(value: Any) -> Any:
        return value

    record, config = found_record(topic="orders"), fake.config("retention.ms", "1", is_set=True)
    monkeypatch.setattr(details, "group", lambda *_: answer(fake.group("billing")))
    monkeypatch.setattr(details, "configs", lambda *_: answer([config]))
    monkeypatch.setattr(messages, "read_page", lambda *_: answer(RecordPage((record,), {})))
    monkeypatch.setattr(messages, "read_record", lambda *_: answer(record))
    orders = fake.topic("orders", groups=("billing",))
    snapshot = fake.snapshot(topics=[orders], groups=[fake.group("billing")])
    with browsing(fake.FakeCollector(snapshot), tmp_path, is_read_only=is_read_only) as browser:
        for path, kinds in PAGES.items():
            page = await browser.get(f"/c/dev/{path}")
            assert page.status == 200, path
            links = [kind for kind in kinds if f'href="/c/dev/change/{kind}?' in page.text]
            links += [kind for kind in kinds if f'href="/c/dev/change/{kind}"' in page.text]
            assert sorted(links) == ([] if is_read_only else sorted(kinds)), path
