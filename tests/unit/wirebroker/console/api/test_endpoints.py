"""The HTTP interface: tokens, roles, changes, errors."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.console_users import token_of, write_tokens, write_users
from tests.support.console.recorded_change import RecordedChange
from tests.support.console.requests import Reply, request
from tests.support.console.wrapped_app import console_in
from wirebroker.base.clock import SystemClock
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.topic_details import PartitionDetails, TopicDetails
from wirebroker.codecs.errors import ErrorCode
from wirebroker.console.api import change_endpoints, endpoints
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.web.app import make_app
from wirebroker.console.web_settings import WebSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTE = "/api/v1/clusters/dev/changes/note-topic"
VALUES = {"topic": "orders", "count": 3, "color": "g", "loud": True, "note": None}


@pytest.fixture
def change(monkeypatch) -> RecordedChange:
    recorded = RecordedChange()
    monkeypatch.setitem(CHANGES, "note-topic", recorded.kind)
    return recorded


@pytest.fixture
def settings(tmp_path) -> WebSettings:
    return WebSettings(
        users=write_users(tmp_path / "users", anna="admin"),
        tokens=write_tokens(
            tmp_path / "tokens", admin="admin", reader="reader", tester="operator@test"
        ),
        audit_log=tmp_path / "audit.log",
    )


@pytest.fixture
def app(settings, change) -> Iterator[Any]:
    served: Any = [
        fake.FakeCollector(fake.snapshot(name, topics=[fake.topic("orders"), fake.topic("b")]))
        for name in ("dev", "test")
    ]
    yield (made := make_app(served, SystemClock(), settings))
    console_in(made).runner.audit.close()


async def call(
    app: Any,
    path: str,
    body: Any = None,
    *,
    token: str = "admin",
    method: str = "",
    **headers: str,
) -> Reply:
    sent = {"Authorization": f"Bearer {token_of(token)}", "Content-Type": "application/json"}
    data = b"" if body is None else json.dumps(body).encode()
    return await request(
        app,
        path,
        method=method or ("GET" if body is None else "POST"),
        headers=sent | headers,
        body=data,
    )


def error_of(reply: Reply) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(reply.text)["error"]
    assert error["status"] == reply.status
    return error


async def test_a_change_is_made_and_logged(app, change, settings):
    reply = await call(app, NOTE, VALUES)
    assert reply.status == 200
    made = json.loads(reply.text)
    assert (made["result"], made["message"]) == ("done", "topic orders is noted")
    assert made["lines"] == ["note: old → "]
    assert change.applied[0] | {"note": ""} == {
        "topic": "orders",
        "note": "",
        "count": "3",
        "color": "g",
        "loud": "yes",
        "secret": "",
    }
    begin, end = map(json.loads, settings.audit_log.read_text().splitlines())
    assert (begin["user"], begin["via"], begin["role"]) == ("admin", "http", "admin")
    assert end["result"] == "done"
    run = await call(app, f"/api/v1/clusters/dev/runs/{made['run']}")
    assert json.loads(run.text)["result"] == "done"


async def test_a_dry_run_changes_nothing(app, change, settings):
    reply = await call(app, f"{NOTE}?dry-run=true", VALUES)
    plan = json.loads(reply.text)
    assert plan["dry_run"] is True
    assert plan["warnings"] == ["the old note is lost"]
    assert plan["command"] == "wirebroker note orders"
    assert change.applied == []
    assert not settings.audit_log.exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer wbc_none"}, 401),
        ({"Authorization": f"Basic {token_of('admin')}"}, 401),
        ({"Authorization": "", "Cookie": "wirebroker-console-8989=" + "x" * 43}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Length": "9999999"}, 413),
    ],
)
async def test_requests_of_others_are_refused(app, change, headers, status):
    reply = await call(app, NOTE, VALUES, **headers)
    assert reply.status == status
    assert change.applied == []


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        ("reader", NOTE, 403),
        ("tester", NOTE, 404),
        ("tester", NOTE.replace("dev", "test"), 200),
        ("admin", NOTE.replace("dev", "none"), 404),
        ("admin", NOTE.replace("note-topic", "note-topics"), 404),
        ("admin", f"{NOTE}?dry-run=yes", 400),
    ],
)
async def test_a_token_has_a_role_in_each_cluster(app, change, token, path, status):
    reply = await call(app, path, VALUES, token=token)
    assert reply.status == status
    assert len(change.applied) == (status == 200)
    if status != 200:
        assert error_of(reply)["message"]


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"topci": "a"}, "topci", "did you mean topic"),
        ({"topic": ["a"]}, "topic", "write a string"),
        ({"topic": 1.5}, "topic", "write a string"),
        ({"topic": ""}, "topic", "a value is missing"),
        ({"topic": "\ud800"}, "topic", "not a text"),
        ({"count": "x"}, "count", "not a whole number"),
        ({"color": "blue"}, "color", "not one of r, g"),
        ({"loud": "maybe"}, "loud", "write yes or no"),
        ({"topic": "missing"}, "topic", "there is no topic"),
    ],
)
async def test_invalid_values_name_their_field(app, change, values, field, message):
    reply = await call(app, NOTE, VALUES | values)
    assert reply.status == 400
    assert error_of(reply)["field"] == field
    assert message in error_of(reply)["message"]
    assert change.applied == []


@pytest.mark.parametrize("body", [b"[]", b"{", b"\xff", b'{"a": NaN}', b"[" * 100_000, b"7"])
async def test_other_bodies_are_refused(app, body):
    reply = await send_body(app, body)
    assert reply.status == 400
    assert "cannot be read" in error_of(reply)["message"]


async def send_body(app: Any, body: bytes) -> Reply:
    headers = {
        "Authorization": f"Bearer {token_of('admin')}",
        "Content-Type": "application/json",
    }
    return await request(app, NOTE, method="POST", headers=headers, body=body)


async def test_repeated_fields_are_refused(app, change):
    body = json.dumps(VALUES).removesuffix("}") + ', "topic": "payments"}'
    reply = await send_body(app, body.encode())
    assert reply.status == 400
    assert "the field 'topic' appears twice" in error_of(reply)["message"]
    assert change.applied == []


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (ChangeError("it is not possible"), 400),
        (ClientError("exists", code=ErrorCode.TOPIC_ALREADY_EXISTS), 409),
        (ClientError("missing", code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 404),
        (ClientError("no broker responds"), 502),
    ],
)
async def test_refusals_of_the_cluster_have_a_status(app, change, refusal, status):
    change.refusal = refusal
    reply = await call(app, NOTE, VALUES)
    assert reply.status == status
    assert error_of(reply)["message"] == str(refusal)


async def test_a_failed_change_is_an_error(app, change):
    change.failure = ClientError("the broker is gone")
    reply = await call(app, NOTE, VALUES)
    assert reply.status == 409
    assert error_of(reply)["result"] == "failed"


async def test_a_change_needs_the_audit_log(app, change, settings):
    settings.audit_log.mkdir()
    reply = await call(app, NOTE, VALUES)
    assert reply.status == 503
    assert "audit log" in error_of(reply)["message"]
    assert change.applied == []


async def test_a_long_change_is_reported_as_running_and_can_be_stopped(app, change, monkeypatch):
    monkeypatch.setattr(change_endpoints, "_PATIENCE_S", 0.05)
    change.gate = asyncio.Event()
    reply = await call(app, NOTE, VALUES)
    assert reply.status == 202
    run = reply.headers["location"]
    assert json.loads((await call(app, run)).text)["message"] == "3 of 10 letters"
    assert (await call(app, run, method="DELETE", token="reader")).status == 403
    stopped = json.loads((await call(app, run, method="DELETE")).text)
    assert stopped["result"] == "stopped"
    assert change.applied == []
    assert (await call(app, run.rpartition("/")[0] + "/none")).status == 404


async def test_clusters_and_kinds_are_listed(app):
    rows = json.loads((await call(app, "/api/v1/clusters")).text)["clusters"]
    assert [(row["name"], row["role"], row["status"]) for row in rows] == [
        ("dev", "admin", "ok"),
        ("test", "admin", "ok"),
    ]
    rows = json.loads((await call(app, "/api/v1/clusters", token="tester")).text)["clusters"]
    assert [row["name"] for row in rows] == ["test"]
    kinds = json.loads((await call(app, "/api/v1/changes")).text)["changes"]
    (kind,) = (row for row in kinds if row["name"] == "note-topic")
    assert kind["role"] == "operator"
    assert kind["fields"][3]["choices"] == ["r", "g"]
    assert all(f["choices"] for row in kinds for f in row["fields"] if f["kind"] == "choice")
    assert json.loads((await call(app, "/api/v1/clusters/dev")).text)["brokers"] == 2
    page = json.loads((await call(app, "/api/v1/clusters/dev/topics?after=b")).text)
    assert page == {
        "topics": [{"name": "orders", "partitions": 3, "replication": 2, "is_internal": False}],
        "has_more": False,
    }


async def test_a_topic_is_described(app, monkeypatch):
    async def details(_client: Any, names: list[str]) -> list[TopicDetails]:
        if names == ["none"]:
            raise ClientError("there is no topic none", code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return [TopicDetails(names[0], bytes(16), [PartitionDetails(0, 1, [1], [1], None, None)])]

    async def configs(*_: Any) -> list[Any]:
        return [
            fake.config("retention.ms", "1000", is_set=True),
            fake.config("secret", "x", is_set=True, is_sensitive=True),
            fake.config("segment.ms", "7"),
        ]

    monkeypatch.setattr(endpoints, "topic_details", details)
    monkeypatch.setattr(endpoints, "configs_of", configs)
    found = json.loads((await call(app, "/api/v1/clusters/dev/topics/orders")).text)
    assert found["partitions"] == [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}]
    assert found["configs"] == {"retention.ms": "1000", "secret": None}
    assert (await call(app, "/api/v1/clusters/dev/topics/none")).status == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", NOTE, 405),
        ("DELETE", NOTE, 405),
        ("POST", "/api/v1/clusters", 405),
        ("GET", "/api/v2/clusters", 404),
        ("GET", "/api/", 404),
    ],
)
async def test_other_paths_and_methods_are_json_errors(app, method, path, status):
    assert error_of(await call(app, path, method=method))["status"] == status


async def test_without_tokens_there_is_no_interface(settings):
    served: Any = [fake.FakeCollector(fake.snapshot())]
    app = make_app(served, SystemClock(), settings._replace(tokens=None))
    reply = await call(app, "/api/v1/clusters")
    assert reply.status == 401
    assert "--tokens" in error_of(reply)["message"]
