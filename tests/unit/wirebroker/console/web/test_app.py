"""Headers of all responses, static files, and the start and end of the collectors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.requests import Streaming, request
from tests.support.console.wrapped_app import unwrapped
from wirebroker.base.clock import SystemClock
from wirebroker.console.view.assets import Assets
from wirebroker.console.web.app import make_app


def app_of(*collectors):
    served: Any = collectors or [fake.FakeCollector(fake.snapshot())]
    return make_app(served, SystemClock())


@pytest.mark.parametrize(
    ("method", "url", "headers", "status"),
    [
        ("GET", "/c/dev/", {}, 200),
        ("HEAD", "/c/dev/", {}, 200),
        ("GET", "/", {}, 307),
        ("GET", "/none", {}, 404),
        ("GET", "/static/none.js", {}, 404),
        ("GET", "/static/..%2fapp.py", {}, 404),
        ("GET", "/c/dev/", {"Host": "evil.example"}, 421),
        ("POST", "/c/dev/", {}, 403),
        ("POST", "/c/dev/", {"Sec-Fetch-Site": "same-origin"}, 405),
        ("GET", "/api/v1/clusters", {}, 401),
        ("HEAD", "/c/dev/events", {}, 405),
        ("GET", "/static/console.css", {}, 200),
    ],
)
async def test_each_response_has_the_security_headers(method, url, headers, status):
    reply = await request(app_of(), url, method=method, headers=headers)
    assert reply.status == status
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"


async def test_an_unexpected_error_is_a_plain_response_with_headers(monkeypatch):
    collector = fake.FakeCollector(fake.snapshot())
    monkeypatch.setattr(collector, "touch", lambda: 1 / 0)
    app = app_of(collector)
    replies = []
    with pytest.raises(ZeroDivisionError):  # for the server's log
        replies.append(await request(app, "/c/dev/"))
    assert replies == []


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Host": "evil.example"}, 421),
        ("GET", {"Host": ""}, 400),
        ("GET", {"Origin": "http://evil.example"}, 403),
        ("PUT", {}, 405),
        ("GET", {}, 401),
    ],
)
async def test_errors_of_the_http_interface_are_json(method, headers, status):
    reply = await request(app_of(), "/api/v1/clusters", method=method, headers=headers)
    assert reply.status == status
    error = json.loads(reply.text)["error"]
    assert error["status"] == status
    assert error["message"]


@pytest.mark.parametrize(("path", "is_json"), [("/api/v1/clusters", True), ("/c/dev/", False)])
async def test_a_bug_has_a_response_too(monkeypatch, path, is_json):
    async def fail(*_: Any) -> None:
        raise ZeroDivisionError

    inner = unwrapped(app_of())
    monkeypatch.setattr(inner, "router", fail)
    inner.middleware_stack = inner.build_middleware_stack()
    stream = Streaming(inner, path)
    with pytest.raises(ZeroDivisionError):  # for the server's log
        await stream.task
    text = b"".join(stream.chunks).decode()
    assert stream.status == 500
    assert "The console failed; see its log." in text
    assert text.startswith('{"error":') == is_json


async def test_pages_are_not_stored_and_static_files_are():
    app = app_of()
    assert (await request(app, "/c/dev/")).headers["cache-control"] == "no-store"
    reply = await request(app, Assets().url("console.css"))
    assert "immutable" in reply.headers["cache-control"]
    assert reply.headers["content-type"] == "text/css; charset=utf-8"


async def test_static_files_are_not_folders_or_notes():
    assets = Assets()
    assert assets.get("README.md") is None
    assert assets.get("../README.md") is None


async def test_pages_have_no_inline_scripts_and_styles():
    page = (await request(app_of(), "/c/dev/")).text
    assert "<style" not in page
    assert " style=" not in page
    assert " onclick=" not in page
    assert page.count("<script ") == page.count("<script src=")


async def test_collectors_live_as_long_as_the_application(monkeypatch):
    collector = fake.FakeCollector(fake.snapshot())
    calls = []

    async def start():
        calls.append("start")

    async def stop():
        calls.append("stop")

    monkeypatch.setattr(collector, "start", start)
    monkeypatch.setattr(collector, "stop", stop)
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent = []

    async def receive():
        return next(messages)

    async def send(message):
        sent.append(message["type"])

    await app_of(collector)({"type": "lifespan", "state": {}}, receive, send)
    assert calls == ["start", "stop"]
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_websockets_are_closed():
    sent = []

    async def send(message):
        sent.append(message)

    await app_of()({"type": "websocket", "path": "/c/dev/events"}, None, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
