"""Records forwarded to another cluster of the console."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.changes import ReadValues, records_of, run_line
from tests.support.console.console_users import PASSWORD, token_of, write_tokens, write_users
from tests.support.console.found_records import found_record
from tests.support.console.requests import Browser, Reply, request
from tests.support.console.wrapped_app import console_in
from wirebroker.base.clock import SystemClock
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import delete_topics
from wirebroker.codecs.errors import ErrorCode
from wirebroker.console.api import change_endpoints
from wirebroker.console.changes.change import ChangeError, PreparedChange
from wirebroker.console.changes.kinds import messages as kinds
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.changes.making import preparing
from wirebroker.console.changes.making.preparing import prepared_change
from wirebroker.console.pages import changes as change_pages
from wirebroker.console.pages import messages as pages
from wirebroker.console.web.app import make_app
from wirebroker.console.web_settings import WebSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from wirebroker.console.model.collector import Collector

KIND = CHANGES["forward-record"]
SOURCE = {"source_topic": "orders", "source_partition": "1", "source_offset": "2"}
RECORD = "/c/dev/topic/record?name=orders&partition=1&offset=2"


async def forwarding(source: Collector, target: Collector, **values: str) -> PreparedChange:
    texts = {field.name: field.default for field in KIND.fields} | SOURCE | values
    read = ReadValues({**texts, "cluster": "other"})
    plan = await prepared_change(KIND, source, read, {"other": target})
    assert values.keys() <= read.names
    return plan


async def test_a_record_is_forwarded(open_cluster, tmp_path):
    async with open_cluster("one") as source, open_cluster("two") as target:
        plan = await forwarding(source, target, topic="copies", partition="2")
        assert plan.summary.startswith("Write the record of orders-1 at offset 2 to topic copies")
        assert plan.lines[:2] == ("partition: 2", "key: k2 (2 bytes)")
        assert plan.notes == ("user in Kafka there: no login",)
        for settings in (source.settings, target.settings):
            assert settings.bootstrap not in plan.command
        assert (await plan.apply()).startswith("stored in copies-2 at offset 0 of cluster")
        brokers = f"BROKERS_OF_{target.settings.name}"
        await run_line(plan.command.replace(brokers, target.settings.bootstrap), tmp_path)
        stored = (await records_of(target.client, "copies"))[TopicPartition("copies", 2)]
        assert [(row.key, row.value, list(row.headers)) for row in stored] == [
            (b"k2", b"v2", [("trace", b"t2")])
        ] * 2
        assert not any((await records_of(source.client, "copies")).values())


async def test_an_edited_record_goes_to_the_partition_of_its_key(open_cluster):
    async with open_cluster("one") as source, open_cluster("two") as target:
        plan = await forwarding(source, target, topic="orders", value="new", value_form="text")
        assert plan.lines[0] == "the record is changed before it is written"
        assert plan.lines[1] in {"partition: 0", "partition: 1"}


async def test_failures_name_the_cluster(open_cluster):
    async with open_cluster("one") as source, open_cluster("two") as target:
        with pytest.raises(ClientError, match="cluster test: there is no topic none") as caught:
            await forwarding(source, target, topic="none")
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(ChangeError, match="topic orders of cluster test has partitions 0 to 1"):
            await forwarding(source, target, topic="orders", partition="9")


async def test_a_failed_write_names_the_cluster(open_cluster):
    async with open_cluster("one") as source, open_cluster("two") as target:
        plan = await forwarding(source, target, topic="copies")
        await delete_topics(target.client, ["copies"])
        with pytest.raises(ClientError, match="cluster test: there is no topic copies") as caught:
            await plan.apply()
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_plan_that_takes_too_long_names_both_clusters(monkeypatch):
    async def hang(*_: Any) -> PreparedChange:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(preparing, "_PATIENCE_S", 0.01)
    collector: Any = fake.FakeCollector(fake.snapshot())
    kind = KIND._replace(prepare_between=hang)
    with pytest.raises(ClientError, match="cluster dev or test did not respond within"):
        await prepared_change(kind, collector, {"cluster": "test"}, {"test": collector})


# --- the clusters that are offered


@pytest.fixture
def app(tmp_path, monkeypatch) -> Iterator[Any]:
    async def read_record(*_: Any) -> Any:
        return found_record(2, partition=1)

    monkeypatch.setattr(kinds, "read_record", read_record)
    monkeypatch.setattr(pages, "read_record", read_record)
    roles = "operator@dev,admin@test,reader@prod"
    alone = {"rita": "operator@dev", "tina": "operator@test"}
    settings = WebSettings(
        users=write_users(tmp_path / "users", anna=roles, **alone),
        tokens=write_tokens(
            tmp_path / "tokens",
            **{"program": roles} | {f"{name}-program": role for name, role in alone.items()},
        ),
        audit_log=tmp_path / "audit.log",
    )
    served: Any = [
        fake.FakeCollector(fake.snapshot(name, topics=[fake.topic("orders")]))
        for name in ("prod", "dev", "test", "hidden")
    ]
    served[2].kafka_user = "console-of-test"
    yield (made := make_app(served, SystemClock(), settings))
    console_in(made).runner.audit.close()


async def test_the_form_offers_the_clusters_in_which_the_user_may_write(app):
    browser = Browser(app)
    await browser.log_in("anna", PASSWORD)
    page = (await browser.get(RECORD)).text
    link = page.partition("/c/dev/change/forward-record")[2].partition('"')[0]
    form = (await browser.get(f"/c/dev/change/forward-record{link.replace('&amp;', '&')}")).text
    offered = form.partition('id="field-cluster"')[2].partition("</select>")[0]
    assert '<option value="test" selected>test</option>' in offered
    assert offered.count("<option") == 1
    assert ">\nvalue</textarea>" in form


async def test_without_another_cluster_to_write_to_there_is_no_link(app):
    browser = Browser(app)
    await browser.log_in("rita", PASSWORD)
    page = (await browser.get(RECORD)).text
    assert "/c/dev/change/resend-record" in page
    assert "/c/dev/change/forward-record" not in page


@pytest.mark.parametrize("cluster", ["prod", "dev", "hidden", "none"])
async def test_a_program_needs_the_role_in_both_clusters(app, cluster: str):
    body = {**SOURCE, "topic": "orders", "cluster": cluster}
    sent = json.dumps(body).encode()
    reply = await request(app, URL, method="POST", headers=_headers("program"), body=sent)
    error = json.loads(reply.text)["error"]
    assert (reply.status, error["field"]) == (400, "cluster")
    assert error["message"].endswith("is not one of test")


# --- what each cluster's people see of a forward

URL = "/api/v1/clusters/dev/changes/forward-record"
SECRET = "broker test-7 refuses User:console-of-test"


@pytest.fixture
def write(monkeypatch) -> WriteToOther:
    """Replace the write to the other cluster; without a failure, it stores the record."""
    written = WriteToOther()
    monkeypatch.setattr(kinds, "_writing", written.prepare)
    return written


class WriteToOther:
    failure: Exception | None = None
    gate: asyncio.Event | None = None

    async def prepare(self, *_: Any, **_options: Any) -> PreparedChange:
        async def apply() -> str:
            if self.gate is not None:
                await self.gate.wait()
            if self.failure is not None:
                raise self.failure
            return "stored in copies-2 at offset 0"

        return PreparedChange(
            "Write the record to copies",
            (),
            "wirebroker produce copies",
            apply,
            progress=lambda: "0 of 1 records to copies",
        )


async def forwarded(app: Any) -> Reply:
    sent = json.dumps({**SOURCE, "topic": "copies", "cluster": "test"}).encode()
    return await request(app, URL, method="POST", headers=_headers("program"), body=sent)


def _headers(program: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token_of(program)}",
        "Content-Type": "application/json",
    }


def entries_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "audit.log").read_text().splitlines()]


async def test_a_forward_is_in_the_audit_log_of_both_clusters(app, tmp_path, write):
    reply = await forwarded(app)
    assert reply.status == 200, reply.text
    entries = entries_of(tmp_path)
    assert [(row["event"], row["cluster"], row["other_cluster"]) for row in entries] == [
        ("begin", "dev", "test"),
        ("begin", "test", "dev"),
        ("end", "dev", "test"),
        ("end", "test", "dev"),
    ]
    assert [row["target"] for row in entries] == ["orders", "copies", "orders", "copies"]
    assert [row["role"] for row in entries] == ["operator", "admin"] * 2
    assert [row["kafka_user"] for row in entries] == ["no login", "console-of-test"] * 2
    assert {(row["user"], row["kind"]) for row in entries} == {("program", "forward-record")}
    assert len({row["change_id"] for row in entries}) == 1
    assert all((row["values"]["topic"] == "copies") for row in entries[:2])
    assert {row["result"] for row in entries[2:]} == {"done"}
    assert {row["message"] for row in entries[2:]} == {
        "stored in copies-2 at offset 0 of cluster test"
    }


async def test_the_entry_of_the_source_does_not_show_the_login_in_the_other_cluster(
    app, tmp_path, write
):
    write.failure = ClientError(SECRET)
    assert (await forwarded(app)).status == 409
    source, other = entries_of(tmp_path)[2:]
    assert (source["result"], other["result"]) == ("failed", "failed")
    assert source["message"] == "it failed in cluster test; see the entry of that cluster"
    assert other["message"] == f"cluster test: {SECRET}"
    assert "console-of-test" not in json.dumps([entries_of(tmp_path)[0], source])


class OneSide(NamedTuple):
    """A user with a role in one of the two clusters, and texts that are hidden from the user."""

    user: str
    cluster: str
    target: str
    hidden: tuple[str, ...]


SIDES = [
    OneSide("rita", "dev", "orders", ("test", "copies", "offset 0")),
    OneSide("tina", "test", "copies", ("dev", "orders", "offset 0")),
]


async def check_view(app: Any, side: OneSide, run: str, result: str) -> Browser:
    """Check what the user sees of a forward in the list, on its page and as JSON."""
    browser = Browser(app)
    await browser.log_in(side.user, PASSWORD)
    listed = (await browser.get(f"/c/{side.cluster}/changes")).text.partition("<tbody")[2]
    page = (await browser.get(f"/c/{side.cluster}/changes/run?id={run}")).text
    content = page.partition('aria-label="Result"')[2]
    path = f"/api/v1/clusters/{side.cluster}/runs/{run}"
    json_text = (await request(app, path, headers=_headers(f"{side.user}-program"))).text
    for text in (listed, content, json_text):
        assert side.target in text
        assert result in text
        assert not [part for part in ("console-of-test", "wirebroker produce") if part in text]
        assert not [part for part in side.hidden if part in text]
    assert "in which you have no role" in content
    assert "Stop" not in content
    assert json.loads(json_text)["message"] == ""
    return browser


@pytest.mark.parametrize("failure", [None, ClientError(SECRET)], ids=["done", "failed"])
@pytest.mark.parametrize("side", SIDES, ids=["source", "target"])
async def test_without_a_role_in_both_clusters_details_are_hidden(app, write, failure, side):
    write.failure = failure
    reply = json.loads((await forwarded(app)).text)
    run = reply["run"] if failure is None else reply["error"]["run"]
    result = "done" if failure is None else "failed"
    await check_view(app, side, run, result)


@contextlib.asynccontextmanager
async def running_forward(app: Any, write: WriteToOther, monkeypatch: Any) -> AsyncIterator[str]:
    """Begin a forward that ends only after the block, unless it is stopped; return its id."""
    for module in (change_endpoints, change_pages):
        monkeypatch.setattr(module, "_PATIENCE_S", 0.05)
    write.gate = asyncio.Event()
    reply = await forwarded(app)
    assert reply.status == 202, reply.text
    run = console_in(app).runner.get(json.loads(reply.text)["run"], "dev")
    assert run is not None
    yield run.run_id
    write.gate.set()
    await run.ended.wait()


@pytest.mark.parametrize("side", SIDES, ids=["source", "target"])
async def test_without_a_role_in_both_clusters_a_forward_cannot_be_stopped(
    app, write, monkeypatch, side
):
    async with running_forward(app, write, monkeypatch) as run:
        await check_refused_stop(app, side, run)
    await check_view(app, side, run, "done")


async def check_refused_stop(app: Any, side: OneSide, run: str) -> None:
    browser = await check_view(app, side, run, "running")
    reply = await browser.send(f"/c/{side.cluster}/changes/stop", {"id": run})
    assert reply.status == 403
    assert "This needs a role in both clusters of the change." in reply.text
    path = f"/api/v1/clusters/{side.cluster}/runs/{run}"
    reply = await request(app, path, method="DELETE", headers=_headers(f"{side.user}-program"))
    assert reply.status == 403
    assert "a role in both clusters of the change" in reply.text
    await check_view(app, side, run, "running")


async def test_a_forward_is_stopped_with_a_role_in_both_clusters(app, tmp_path, write, monkeypatch):
    browser = Browser(app)
    await browser.log_in("anna", PASSWORD)
    async with running_forward(app, write, monkeypatch) as run:
        page = (await browser.get(f"/c/test/changes/run?id={run}")).text
        assert "The change is being made: 0 of 1 records to copies." in page
        assert ">Stop</button>" in page
        assert "0 of 1 records to copies" in (await browser.get("/c/dev/changes")).text
        reply = await browser.send("/c/test/changes/stop", {"id": run})
        assert "It was stopped by anna" in (await browser.follow(reply)).text
    assert [row["result"] for row in entries_of(tmp_path)[-2:]] == ["stopped", "stopped"]
    for side in SIDES:
        await check_view(app, side, run, "stopped")


async def test_with_a_role_in_both_clusters_details_are_shown(app, write):
    run = json.loads((await forwarded(app)).text)["run"]
    browser = Browser(app)
    await browser.log_in("anna", PASSWORD)
    for cluster in ("dev", "test"):
        page = (await browser.get(f"/c/{cluster}/changes/run?id={run}")).text
        assert "Stored in copies-2 at offset 0 of cluster test" in page
        assert "Write the record to copies" in page
    assert (await browser.get(f"/c/prod/changes/run?id={run}")).status == 404


async def test_preparing_a_forward_checks_the_role_in_the_other_cluster_again():
    collector: Any = fake.FakeCollector(fake.snapshot())
    values = {field.name: "" for field in KIND.fields} | {"cluster": "test"}
    with pytest.raises(ChangeError, match="cluster 'test' does not exist, or you may not"):
        await prepared_change(KIND, collector, values, {})
    with pytest.raises(ChangeError, match="name the other cluster"):
        await KIND.prepare(collector, values)
