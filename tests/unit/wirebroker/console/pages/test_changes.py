"""Forms of changes, their plans and confirmations, and attempts to go around them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.recorded_change import RecordedChange
from tests.support.console.requests import Browser, Reply
from tests.support.console.wrapped_app import console_in
from wirebroker.base.clock import SystemClock
from wirebroker.client.errors import ClientError
from wirebroker.console.changes.change import ChangeError, ConsoleRole
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.pages import changes as pages_module
from wirebroker.console.web.app import make_app
from wirebroker.console.web_settings import WebSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORM = "/c/dev/change/note-topic"
EVIL = "<script>alert(1)</script>\"'{{7*7}}"
VALUES = {"topic": "orders", "note": "new\r\nlines", "color": "g", "loud": "yes"}
CHECKED = {
    "topic": "orders",
    "note": "new\nlines",
    "count": "1",
    "color": "g",
    "loud": "yes",
    "secret": "",
}


@pytest.fixture
def change(monkeypatch) -> RecordedChange:
    recorded = RecordedChange()
    monkeypatch.setitem(CHANGES, "note-topic", recorded.kind)
    return recorded


@pytest.fixture
def collector() -> fake.FakeCollector:
    return fake.FakeCollector(fake.snapshot(topics=[fake.topic("orders")]))


@pytest.fixture
def app(collector, tmp_path, change) -> Any:
    served: Any = [collector]
    settings = WebSettings(audit_log=tmp_path / "audit.log")
    return make_app(served, SystemClock(), settings)


@pytest.fixture
def browser(app):
    yield Browser(app)
    console_in(app).runner.audit.close()


@pytest.fixture
def audit(tmp_path) -> Callable[[], list[dict[str, Any]]]:
    path: Path = tmp_path / "audit.log"
    return lambda: (
        [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    )


async def planned(browser: Browser, values: dict[str, str] = VALUES) -> tuple[Reply, str]:
    """Show a plan; return its page and id."""
    await browser.get(FORM)
    reply = await browser.send(FORM, values)
    assert reply.status == 200, reply.text
    return reply, plan_of(reply)


def plan_of(reply: Reply) -> str:
    return reply.text.partition('name="plan" value="')[2].partition('"')[0]


async def test_a_form_has_the_values_of_its_address(browser):
    reply = await browser.get(f"{FORM}?topic=orders&loud=yes&color=g&other=x")
    assert reply.status == 200
    assert 'name="topic" value="orders"' in reply.text
    assert 'value="g" selected' in reply.text
    assert 'name="count" value="1"' in reply.text
    assert 'name="loud" value="yes" checked' in reply.text
    assert "Kafka user</a>: no login" in reply.text


async def test_a_change_is_shown_confirmed_made_and_logged(browser, change, audit, collector):
    reply, plan = await planned(browser)
    for text in (
        "Topic orders gets a note.",
        "note: old → new",
        "The old note is lost.",
        "end offset 1",
        "<span>wirebroker</span> <span>note</span> <span>orders</span>",
    ):
        assert text in reply.text
    assert change.applied == []
    assert audit() == []
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    assert reply.headers["location"] == "/c/dev/topic?name=orders"
    assert change.applied == [CHECKED]
    assert collector.refreshes == 1
    begin, end = audit()
    assert (begin["event"], end["event"], end["result"]) == ("begin", "end", "done")
    assert begin["change_id"] == end["change_id"]
    assert begin["values"] == CHECKED
    assert (begin["role"], begin["address"], begin["user"]) == ("admin", "127.0.0.1", None)
    assert (begin["cluster"], begin["kind"], begin["target"]) == ("dev", "note-topic", "orders")
    assert "Topic orders is noted." in (await browser.follow(reply)).text
    assert "is noted" not in (await browser.get("/c/dev/topic?name=orders")).text


async def test_a_plan_is_carried_out_once(browser, change):
    _, plan = await planned(browser)
    await browser.send(f"{FORM}/apply", {"plan": plan})
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    assert reply.status == 409
    assert len(change.applied) == 1


async def test_a_plan_that_has_changed_is_shown_again(browser, change):
    _, plan = await planned(browser)
    change.before = "meanwhile"
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    assert reply.status == 409
    assert "The cluster has changed" in reply.text
    assert "note: meanwhile → new" in reply.text
    assert change.applied == []
    reply = await browser.send(f"{FORM}/apply", {"plan": plan_of(reply)})
    assert reply.status == 303
    assert len(change.applied) == 1


async def test_values_of_a_plan_can_be_changed_except_passwords(browser):
    reply, plan = await planned(browser, VALUES | {"secret": "a secret"})
    assert "a secret" not in reply.text
    reply = await browser.get(f"{FORM}?plan={plan}")
    assert "new\nlines</textarea>" in reply.text
    assert "a secret" not in reply.text


async def test_passwords_are_in_no_page_and_no_log(browser, change, audit):
    reply, plan = await planned(browser, VALUES | {"secret": "a secret"})
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    assert change.applied[0]["secret"] == "a secret"
    assert audit()[0]["values"]["secret"] == "(hidden)"
    change.refusal = ChangeError("no", "topic")
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES | {"secret": "a secret"})
    assert reply.status == 422
    assert "a secret" not in reply.text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"topic": "  "}, "Topic: a value is missing."),
        ({"count": "1.5"}, "is not a whole number"),
        ({"count": "9" * 30}, "is not a whole number"),
        ({"color": "blue"}, "is not one of r, g"),
        ({"topic": "missing"}, "There is no topic missing."),
    ],
)
async def test_invalid_values_return_to_the_form(browser, change, values, message):
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES | values)
    assert reply.status == 422
    assert message in reply.text
    assert 'aria-invalid="true"' in reply.text
    assert "new\nlines</textarea>" in reply.text


async def test_a_refusal_of_the_cluster_returns_to_the_form(browser, change):
    change.refusal = ClientError("the cluster refuses", code=41)
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES)
    assert (reply.status, "The cluster refuses." in reply.text) == (422, True)


async def test_a_failed_change_has_a_page_with_the_reason(browser, change, audit):
    change.failure = ClientError("the broker is gone")
    _, plan = await planned(browser)
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    assert reply.headers["location"].startswith("/c/dev/changes/run?id=")
    assert "The change failed: The broker is gone." in (await browser.follow(reply)).text
    assert audit()[1]["result"] == "failed"
    assert "failed" in (await browser.get("/c/dev/changes")).text


async def test_a_long_change_shows_its_progress_and_can_be_stopped(
    browser, change, audit, monkeypatch
):
    monkeypatch.setattr(pages_module, "_PATIENCE_S", 0.05)
    change.gate = asyncio.Event()
    _, plan = await planned(browser)
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    running = await browser.follow(reply)
    assert "The change is being made: 3 of 10 letters." in running.text
    run_id = reply.headers["location"].partition("id=")[2]
    reply = await browser.send("/c/dev/changes/stop", {"id": run_id})
    stopped = await browser.follow(reply)
    assert (
        "The change was stopped: It was stopped by a user without a login after 3 of 10 letters;"
        " it may have been made in part." in stopped.text
    )
    assert change.applied == []
    assert audit()[1]["result"] == "stopped"


async def test_nothing_is_changed_without_an_audit_entry(browser, change, tmp_path):
    (tmp_path / "audit.log").mkdir()
    _, plan = await planned(browser)
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    assert reply.status == 503
    assert "Cannot write the audit log" in reply.text
    assert change.applied == []


async def test_hostile_values_are_text(browser, change):
    reply, _ = await planned(browser, VALUES | {"topic": EVIL, "note": EVIL})
    assert "<script>alert" not in reply.text
    assert "49}}" not in reply.text
    assert "{{7*7}}" in reply.text
    change.refusal = ClientError(EVIL)
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES | {"topic": EVIL, "note": EVIL})
    assert reply.status == 422
    assert "<script>alert" not in reply.text


async def test_results_cannot_add_headers(browser):
    _, plan = await planned(browser, VALUES | {"topic": "x\r\nSet-Cookie: a=b"})
    reply = await browser.send(f"{FORM}/apply", {"plan": plan})
    assert reply.headers["location"] == "/c/dev/topics"
    assert "set-cookie" not in reply.headers


# --- attacks ---


@pytest.mark.parametrize(
    ("form", "headers", "status"),
    [
        ({"csrf-token": ""}, {}, 403),
        ({"csrf-token": "0" * 64}, {}, 403),
        ({}, {"Cookie": ""}, 403),
        ({}, {"Cookie": "wirebroker-console-8989=" + "x" * 43}, 403),
        ({}, {"Origin": "http://evil.example"}, 403),
        ({}, {"Origin": "null"}, 403),
        ({}, {"Sec-Fetch-Site": "cross-site"}, 403),
        ({}, {"Sec-Fetch-Site": ""}, 403),
        ({}, {"Host": "evil.example"}, 421),
        ({}, {"Content-Type": "text/plain"}, 415),
        ({}, {"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({}, {"Content-Length": "2000000"}, 413),
        ({}, {"Content-Length": "x"}, 413),
        ({f"field-{number}": "x" for number in range(200)}, {}, 400),
        ({"note": "x" * (1 << 20)}, {}, 413),
        ({"note": "x" * 100_000}, {}, 200),
    ],
)
async def test_forged_and_oversized_forms_are_refused(browser, change, form, headers, status):
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES | form, headers)
    assert reply.status == status
    assert change.applied == []


async def test_a_token_of_another_browser_is_refused(browser, app, change):
    other = Browser(app)
    await other.get(FORM)
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES | {"csrf-token": other.form_token})
    assert reply.status == 403


async def test_a_plan_of_another_browser_is_not_carried_out(browser, app, change):
    _, plan = await planned(browser)
    other = Browser(app)
    await other.get(FORM)
    assert (await other.send(f"{FORM}/apply", {"plan": plan})).status == 409
    assert "new\nlines" not in (await other.get(f"{FORM}?plan={plan}")).text
    assert change.applied == []


async def test_a_form_that_is_not_utf8_is_refused(browser):
    await browser.get(FORM)
    assert (await browser.send(FORM, VALUES | {"note": "x"}, {"X-A": "b"})).status == 200
    reply = await browser.send_bytes(
        "POST",
        FORM,
        {
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": "same-origin",
        },
        b"note=%ff",
    )
    assert reply.status == 400


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("change/none", "GET", 404),
        ("change/none", "POST", 404),
        ("change/note-topic/apply", "GET", 405),
        ("changes/stop", "GET", 405),
        ("change/note-topic", "PUT", 405),
        ("change/note-topic", "DELETE", 405),
        ("change/note-topic", "HEAD", 200),
        ("changes/run?id=none", "GET", 404),
    ],
)
async def test_other_paths_and_methods_change_nothing(browser, change, path, method, status):
    await browser.get(FORM)
    reply = await browser.send_bytes(
        method,
        f"/c/dev/{path}",
        {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"},
        b"",
    )
    assert reply.status == status
    assert change.applied == []


async def test_a_read_only_console_offers_no_change(collector, change, tmp_path):
    served: Any = [collector]
    settings = WebSettings(audit_log=tmp_path / "audit.log", is_read_only=True)
    browser = Browser(make_app(served, SystemClock(), settings))
    reply = await browser.get(FORM)
    assert (reply.status, "--read-only" in reply.text) == (403, True)
    home = await browser.get("/c/dev/")
    assert "read-only</span>" in home.text
    assert "/c/dev/changes" not in home.text
    assert (await browser.send(FORM, VALUES)).status == 403


def test_roles_are_ordered():
    assert ConsoleRole.READER < ConsoleRole.OPERATOR < ConsoleRole.ADMIN
