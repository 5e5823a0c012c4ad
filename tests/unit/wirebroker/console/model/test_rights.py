from __future__ import annotations

from typing import Any

import pytest

from tests.support.console import fake_cluster as fake
from wirebroker.client.errors import ClientError
from wirebroker.console.model import rights
from wirebroker.console.model.snapshot import ClusterStatus


def missing(*operations: str):
    async def answer(_client: Any, requested: list[str]) -> list[str]:
        assert set(operations) <= set(requested)
        return list(operations)

    return answer


def collector() -> Any:
    return fake.FakeCollector(fake.snapshot())


async def test_missing_rights_are_named_with_their_use(monkeypatch):
    monkeypatch.setattr(rights, "missing_cluster_rights", missing("create", "alter_configs"))
    assert await rights.missing_rights_of(collector().client) == [
        "Create, for creating topics",
        "AlterConfigs, for changes of brokers' configs, and of quotas",
    ]


@pytest.mark.parametrize(
    ("operations", "text"),
    [((), ""), (("alter",), "cluster dev: the console's user, no login, lacks rights")],
)
async def test_missing_rights_are_logged(monkeypatch, caplog, operations, text):
    monkeypatch.setattr(rights, "missing_cluster_rights", missing(*operations))
    await rights.log_missing_rights(collector())
    assert text in caplog.text
    assert bool(text) == bool(caplog.text)


async def test_rights_are_logged_when_the_cluster_is_read(monkeypatch, caplog):
    monkeypatch.setattr(rights, "missing_cluster_rights", missing("alter"))
    read = collector()
    read.snapshot = read.snapshot._replace(status=ClusterStatus.FAILED, number=1)

    async def newer_than(_number: int) -> None:
        read.snapshot = read.snapshot._replace(status=ClusterStatus.OK)

    monkeypatch.setattr(read, "newer_than", newer_than)
    await rights.log_missing_rights(read)
    assert "lacks rights" in caplog.text


async def test_an_unreachable_cluster_is_logged(monkeypatch, caplog):
    async def fail(*_: Any) -> None:
        raise ClientError("no broker responds")

    monkeypatch.setattr(rights, "missing_cluster_rights", fail)
    await rights.log_missing_rights(collector())
    assert "the console's rights are unknown: no broker responds" in caplog.text
