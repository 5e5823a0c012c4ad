"""Logins, sessions and roles, and attempts to go around them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.console_users import PASSWORD, write_users
from tests.support.console.recorded_change import RecordedChange
from tests.support.console.requests import Browser, Streaming
from tests.support.console.wrapped_app import console_in
from tests.support.records.clocks import MovedClock
from wirebroker.base.clock import next_turn
from wirebroker.console.changes.change import ConsoleRole
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.login.sessions import IDLE_S, LONGEST_S
from wirebroker.console.pages import messages
from wirebroker.console.pages.login import next_page
from wirebroker.console.records.downloads import CutDownloadError
from wirebroker.console.web import viewer_check
from wirebroker.console.web.app import make_app
from wirebroker.console.web.stream_limit import STREAM_LIMITS
from wirebroker.console.web_settings import WebSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COOKIE = "wirebroker-console-8989"
FORM = "/c/dev/change/note-topic"
VALUES = {"topic": "orders", "color": "g"}


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def users(tmp_path) -> Path:
    return write_users(
        tmp_path / "users",
        anna="admin",
        olga="reader,operator@dev",
        rita="reader",
        tom="admin@test",
    )


@pytest.fixture
def settings(tmp_path, users) -> WebSettings:
    return WebSettings(users=users, audit_log=tmp_path / "audit.log")


@pytest.fixture
def app(clock, settings) -> Iterator[Any]:
    served: Any = [
        fake.FakeCollector(fake.snapshot(name, topics=[fake.topic("orders")]))
        for name in ("dev", "test")
    ]
    yield (made := make_app(served, clock, settings))
    console_in(made).runner.audit.close()


@pytest.fixture
def browser(app) -> Browser:
    return Browser(app)


@pytest.fixture
def change(monkeypatch) -> RecordedChange:
    recorded = RecordedChange(ConsoleRole.OPERATOR)
    monkeypatch.setitem(CHANGES, "note-topic", recorded.kind)
    return recorded


def audited(settings: WebSettings) -> list[dict[str, Any]]:
    assert settings.audit_log is not None
    return [json.loads(line) for line in settings.audit_log.read_text().splitlines()]


@pytest.mark.parametrize("path", ["/", "/c/dev/", "/c/dev/topic?name=a&page=2", "/c/none/"])
async def test_pages_need_a_login_and_are_opened_after_it(browser, path):
    reply = await browser.get(path)
    assert reply.status == 303
    login = await browser.follow(reply)
    assert (login.status, "Password" in login.text) == (200, True)
    reply = await browser.send("/login", {"name": "anna", "password": PASSWORD, "next": path})
    assert reply.headers["location"] == path
    assert (await browser.get("/c/dev/")).status == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/c/dev/events", {}, 401),
        ("GET", "/c/dev/topic/tail?name=orders", {}, 401),
        ("GET", "/c/dev/topic/download?name=orders", {}, 401),
        ("GET", "/c/dev/topics", {"HX-Request": "true"}, 401),
        ("POST", "/c/dev/change/note-topic", {"Sec-Fetch-Site": "same-origin"}, 401),
        ("POST", "/logout", {"Sec-Fetch-Site": "same-origin"}, 401),
        ("GET", "/api/v1/clusters", {}, 401),
        ("GET", "/static/console.css", {}, 200),
        ("GET", "/login", {}, 200),
    ],
)
async def test_without_a_login_nothing_else_is_served(browser, method, path, headers, status):
    reply = await browser.send_bytes(method, path, headers)
    assert reply.status == status
    assert "orders" not in reply.text


async def test_a_refreshed_part_leads_to_the_login(browser):
    reply = await browser.get("/c/dev/topics?q=a", {"HX-Request": "true"})
    assert reply.headers["hx-redirect"] == "/login?next=/c/dev/topics%3Fq%3Da"


async def test_the_login_replaces_the_cookie(browser):
    await browser.get("/login")
    before = browser.cookies[COOKIE]
    reply = await browser.log_in("anna", PASSWORD)
    assert browser.cookies[COOKIE] != before
    assert reply.headers["set-cookie"].endswith(
        "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"
    )
    after = browser.cookies[COOKIE]
    browser.cookies[COOKIE] = before  # a cookie that someone has planted is worth nothing
    assert (await browser.get("/c/dev/")).status == 303
    browser.cookies[COOKIE] = after
    assert (await browser.get("/c/dev/")).status == 200


async def test_the_cookie_is_secure_behind_a_proxy(clock, settings):
    served: Any = [fake.FakeCollector(fake.snapshot())]
    secure = make_app(served, clock, settings._replace(is_behind_proxy=True))
    reply = await Browser(secure).get("/login")
    assert reply.headers["set-cookie"].startswith("__Host-wirebroker-console=")
    assert reply.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"name": "anna", "password": "my-other-one"}, 403),
        ({"name": "none", "password": PASSWORD}, 403),
        ({"name": "anna", "password": ""}, 403),
        ({"name": "anna"}, 403),
        ({"name": "anna", "password": PASSWORD, "csrf-token": "0" * 64}, 403),
        ({"name": "anna\r\nX: y", "password": PASSWORD}, 403),
        ({"name": "<script>", "password": "<script>"}, 403),
        ({"name": "anna", "password": PASSWORD, "x": "x" * 20_000}, 413),
        ({"name": "anna", "password": PASSWORD}, 303),
    ],
)
async def test_only_the_right_password_logs_in(browser, form, status):
    await browser.get("/login")
    reply = await browser.send("/login", form)
    assert reply.status == status
    assert "<script>" not in reply.text.replace("<script src", "")
    assert PASSWORD not in reply.text
    assert "my-other-one" not in reply.text


async def test_ten_failed_logins_lock_the_address_out_for_a_minute(app, browser, clock, settings):
    for _ in range(10):
        assert (await browser.log_in("anna", "wrong")).status == 403
    reply = await browser.log_in("anna", PASSWORD)
    assert reply.status == 429
    assert 0 < int(reply.headers["retry-after"]) <= 60
    assert (await Browser(app).log_in("rita", PASSWORD)).status == 429
    clock.passed_ms += 61_000
    assert (await browser.log_in("anna", PASSWORD)).status == 303
    events = [(entry["event"], entry["user"]) for entry in audited(settings)]
    assert events == [
        *[("login-failed", "anna")] * 10,
        ("locked-out", None),
        ("login", "anna"),
    ]


async def test_a_failed_login_is_logged_with_the_name_of_a_user_only(browser, settings):
    for name in ("anna", "a password by mistake"):
        await browser.log_in(name, "wrong")
    assert [entry["user"] for entry in audited(settings)] == ["anna", None]


async def test_redirects_behind_a_proxy_stay_secure(clock, settings):
    settings = settings._replace(is_behind_proxy=True)
    browser = Browser(make_app([], clock, settings))
    await browser.get("/login")
    await browser.log_in("anna", PASSWORD)
    reply = await browser.get("/login/")
    assert (reply.status, reply.headers["location"]) == (307, "https://127.0.0.1:8989/login")


@pytest.mark.parametrize(
    ("is_behind_proxy", "headers", "status"),
    [
        (False, {"X-Forwarded-For": "192.0.2.{n}"}, 429),  # a client cannot choose its address
        (True, {"X-Forwarded-For": "192.0.2.{n}"}, 303),
        (True, {"X-Forwarded-For": "192.0.2.{n}, 192.0.2.1"}, 429),
        (True, {"X-Forwarded-For": "2001:db8::{n}"}, 429),
        (True, {"X-Forwarded-For": "2001:db8:0:{n}::1"}, 303),
    ],
)
async def test_an_address_is_locked_out_wherever_it_claims_to_be(
    clock, settings, is_behind_proxy, headers, status
):
    served: Any = [fake.FakeCollector(fake.snapshot())]
    app = make_app(served, clock, settings._replace(is_behind_proxy=is_behind_proxy))
    reply = None
    for number in range(1, 12):
        sent = {name: value.replace("{n}", str(number)) for name, value in headers.items()}
        browser = Browser(app, sent)
        reply = await browser.log_in("anna", PASSWORD if number == 11 else "wrong")
    assert reply is not None
    assert reply.status == status


async def test_a_logout_ends_the_session(browser, settings):
    await browser.log_in("anna", PASSWORD)
    await browser.get("/c/dev/")
    cookie = browser.cookies[COOKIE]
    assert (await browser.send("/logout", {"csrf-token": ""})).status == 403
    reply = await browser.send("/logout", {})
    assert reply.headers["location"] == "/login"
    assert "Max-Age=0" in reply.headers["set-cookie"]
    browser.cookies[COOKIE] = cookie
    assert (await browser.get("/c/dev/")).status == 303
    assert [entry["event"] for entry in audited(settings)] == ["login", "logout"]


@pytest.mark.parametrize(
    ("step_s", "headers", "is_open_after"),
    [
        (IDLE_S / 2, {}, LONGEST_S - IDLE_S),
        (IDLE_S / 2, {"HX-Request": "true"}, IDLE_S / 2),  # refreshing pages keep nothing alive
    ],
)
async def test_sessions_expire(browser, clock, step_s, headers, is_open_after):
    await browser.log_in("anna", PASSWORD)
    open_s = 0.0
    while True:
        clock.passed_ms += int(step_s * 1000)
        if (await browser.get("/c/dev/", headers)).status != 200:
            break
        open_s += step_s
    assert is_open_after <= open_s < LONGEST_S
    assert (await browser.get("/c/dev/")).status == 303


async def test_one_user_leaves_half_of_the_streams_to_others(app):
    cookies = {}
    for name in ("anna", "rita"):
        browser = Browser(app)
        await browser.log_in(name, PASSWORD)
        cookies[name] = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}

    async def opened_by(name: str) -> Streaming:
        stream = Streaming(app, "/c/dev/events", headers=cookies[name])
        await next_turn()
        return stream

    of_anna = [await opened_by("anna") for _ in range(STREAM_LIMITS["events"] // 2)]
    refused = await opened_by("anna")
    assert (refused.status, refused.task.done()) == (503, True)
    of_rita = await opened_by("rita")
    assert not of_rita.task.done()
    await of_anna.pop().leave()
    again = await opened_by("anna")
    assert not again.task.done()
    for stream in (*of_anna, of_rita, again):
        await stream.leave()


async def test_a_stream_ends_with_its_session(app, browser, monkeypatch, users, clock):
    await browser.log_in("anna", PASSWORD)
    await browser.get("/c/dev/")
    headers = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    stream = Streaming(app, "/c/dev/events", headers=headers)
    await stream.read_until("event: connected")
    await browser.send("/logout", {})
    await stream.task
    await browser.log_in("anna", PASSWORD)
    headers = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    monkeypatch.setattr(viewer_check, "_CHECK_S", 0.01)
    stream = Streaming(app, "/c/dev/events", headers=headers)
    await stream.read_until("event: connected")
    write_users(users, anna="reader@test")
    clock.passed_ms += 1000
    await stream.task
    assert stream.status == 200


async def test_a_download_whose_session_ends_is_not_ended_as_complete(app, browser, monkeypatch):
    async def endless(*_):
        yield b"line\n"
        await asyncio.Event().wait()

    monkeypatch.setattr(messages, "downloaded", endless)
    await browser.log_in("anna", PASSWORD)
    await browser.get("/c/dev/")
    headers = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    url = "/c/dev/topic/download?name=orders&form=csv"
    left = Streaming(app, url, headers=headers)
    await left.read_until("line")
    await left.leave()
    stream = Streaming(app, url, headers=headers)
    await stream.read_until("line")
    await browser.send("/logout", {})
    with pytest.raises(CutDownloadError, match="a download of anna ended with the session"):
        await stream.task
    assert stream.chunks == [b"line\n"]


@pytest.mark.parametrize(
    ("name", "path", "status"),
    [
        ("anna", "/c/dev/", 200),
        ("tom", "/c/test/", 200),
        ("tom", "/c/dev/", 404),
        ("tom", "/c/dev/topic?name=orders", 404),
        ("tom", "/c/dev/events", 404),
        ("tom", "/c/dev/change/note-topic", 404),
        ("rita", "/c/dev/", 200),
        ("rita", "/c/dev/change/note-topic", 403),
        ("olga", "/c/dev/change/note-topic", 200),
        ("olga", "/c/test/change/note-topic", 403),
        ("anna", "/c/test/change/note-topic", 200),
    ],
)
async def test_roles_are_set_for_each_cluster(browser, change, name, path, status):
    await browser.log_in(name, PASSWORD)
    reply = await browser.get(path)
    assert reply.status == status
    if status == 404:
        assert "Clusters: test." in reply.text


async def test_too_low_a_role_changes_nothing(browser, change):
    await browser.log_in("rita", PASSWORD)
    page = await browser.get("/c/dev/")
    assert "reader</span>" in page.text
    assert "/c/dev/changes" not in page.text
    for path in (FORM, f"{FORM}/apply"):
        assert (await browser.send(path, VALUES | {"plan": "x"})).status == 403
    assert change.applied == []


async def test_a_role_that_was_lowered_holds_for_a_confirmation(browser, change, users, clock):
    await browser.log_in("olga", PASSWORD)
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES)
    plan = reply.text.partition('name="plan" value="')[2].partition('"')[0]
    write_users(users, olga="reader")
    clock.passed_ms += 1000
    assert (await browser.send(f"{FORM}/apply", {"plan": plan})).status == 403
    assert change.applied == []


async def test_the_audit_log_names_the_user_and_role(browser, change, settings):
    await browser.log_in("olga", PASSWORD)
    await browser.get(FORM)
    reply = await browser.send(FORM, VALUES)
    plan = reply.text.partition('name="plan" value="')[2].partition('"')[0]
    await browser.send(f"{FORM}/apply", {"plan": plan})
    begin = audited(settings)[1]
    assert (begin["user"], begin["role"], begin["via"]) == ("olga", "operator", "browser")


async def test_the_list_of_clusters_has_only_those_of_the_user(browser):
    await browser.log_in("anna", PASSWORD)
    assert "/c/test/" in (await browser.get("/c/dev/")).text
    await browser.log_in("tom", PASSWORD)
    other = Browser(browser.app)
    await other.log_in("tom", PASSWORD)
    assert (await other.get("/")).headers["location"] == "/c/test/"
    assert "/c/dev/" not in (await other.get("/c/test/")).text


async def test_a_link_from_another_site_keeps_the_session(browser):
    await browser.log_in("anna", PASSWORD)
    cookie = browser.cookies.pop(COOKIE)  # SameSite=Strict: not sent with the link
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    reply = await browser.get("/c/dev/topics?q=a&sort=b", link)
    assert "set-cookie" not in reply.headers
    assert 'content="0; url=/c/dev/topics?q=a&amp;sort=b"' in reply.text
    browser.cookies[COOKIE] = cookie
    assert (await browser.get("/c/dev/topics?q=a&sort=b")).status == 200


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("/c/dev/topic?name=a", "/c/dev/topic?name=a"),
        ("", "/"),
        ("//evil.example/c/", "/"),
        ("https://evil.example/c/dev/", "/"),
        ("/\\evil.example", "/"),
        ("/c/\\evil", "/"),
        ("/logout", "/"),
        ("/c/dev/\r\nSet-Cookie: a=b", "/"),
        ("javascript:alert(1)", "/"),
        ("http://[::1", "/"),
    ],
)
def test_the_login_leads_only_to_own_pages(text, page):
    assert next_page(text) == page
