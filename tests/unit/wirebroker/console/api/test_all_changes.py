"""Every kind of change has a JSON endpoint with its role and audit entries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.console_users import token_of, write_tokens
from tests.support.console.requests import Reply, request
from tests.support.console.wrapped_app import console_in
from wirebroker.base.clock import SystemClock
from wirebroker.console.changes.change import FieldKind, PreparedChange
from wirebroker.console.changes.kinds.table import CHANGES
from wirebroker.console.web.app import make_app
from wirebroker.console.web_settings import WebSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wirebroker.console.changes.change import ChangeKind, Field

SECRET = "a secret text"
ROLES = ("reader", "operator", "admin")


@pytest.fixture
def log(tmp_path) -> Path:
    path: Path = tmp_path / "audit.log"
    return path


@pytest.fixture
def app(tmp_path, log) -> Iterator[Any]:
    tokens = write_tokens(tmp_path / "tokens", **{role: role for role in ROLES})
    clusters: Any = [fake.FakeCollector(fake.snapshot(name)) for name in ("dev", "test")]
    settings = WebSettings(tokens=tokens, audit_log=log)
    yield (made := make_app(clusters, SystemClock(), settings))
    console_in(made).runner.audit.close()


@pytest.fixture
def without_cluster(monkeypatch) -> None:
    """Let each kind make nothing, since there is no cluster."""

    async def apply() -> str:
        return "made"

    async def prepare(*_: Any) -> PreparedChange:
        return PreparedChange("a change", (), "", apply)

    for name, kind in list(CHANGES.items()):
        between = prepare if kind.prepare_between else None
        stub = kind._replace(prepare=prepare, prepare_between=between)
        monkeypatch.setitem(CHANGES, name, stub)


def value_of(kind: ChangeKind, field: Field) -> object:
    if field.name == kind.other_cluster:
        return "test"
    if field.kind is FieldKind.CHOICE:
        return field.choices[0][0]
    values = {FieldKind.NUMBER: 1, FieldKind.YES_NO: True, FieldKind.PASSWORD: SECRET}
    return values.get(field.kind, "x")


async def sent(app: Any, kind: ChangeKind, role: str) -> Reply:
    body = {field.name: value_of(kind, field) for field in kind.fields}
    headers = {
        "Authorization": f"Bearer {token_of(role)}",
        "Content-Type": "application/json",
    }
    path = f"/api/v1/clusters/dev/changes/{kind.name}"
    return await request(app, path, method="POST", headers=headers, body=json.dumps(body).encode())


@pytest.mark.usefixtures("without_cluster")
@pytest.mark.parametrize("name", list(CHANGES))
async def test_a_change_needs_its_role_and_is_logged(app, log, name: str):
    kind = CHANGES[name]
    role = kind.role.name.lower()
    assert role != "reader"
    refused = await sent(app, kind, ROLES[ROLES.index(role) - 1])
    assert refused.status == 403
    assert f"needs the role {role}" in json.loads(refused.text)["error"]["message"]
    assert not log.exists()
    reply = await sent(app, kind, role)
    assert reply.status == 200, reply.text
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    dev = [row for row in rows if row["cluster"] == "dev"]
    assert [(row["event"], row.get("result")) for row in dev] == [("begin", None), ("end", "done")]
    assert len(rows) == (4 if kind.other_cluster else 2)
    for row in rows:
        assert (row["kind"], row["user"], row["via"], row["role"]) == (name, role, "http", role)
    assert SECRET not in log.read_text()
