from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from wirebroker.client.errors import ClientError
from wirebroker.console.model import rights
from wirebroker.console.model.snapshot import ClusterStatus

if TYPE_CHECKING:
    from collections.abc import Sequence


def missing(*operations: str):
    async def answer(_client: Any, requested: Sequence[str]) -> list[str]:
        return [operation for operation in operations if operation in requested]

    return answer


def collector() -> Any:
    return fake.FakeCollector(fake.snapshot())


@pytest.mark.parametrize("is_read_only", [False, True])
async def test_missing_rights_are_named_with_their_use(monkeypatch, is_read_only):
    monkeypatch.setattr(rights, "missing_cluster_rights", missing("create", "describe_configs"))
    client = collector().client
    named = await rights.missing_rights_of(client, is_read_only=is_read_only)
    create = "Create, for creating topics, unless ACLs of topics allow it"
    reading = "DescribeConfigs, for configs of brokers, and quotas"
    assert named == ([reading] if is_read_only else [create, reading])


@pytest.mark.parametrize(
    ("operations", "is_read_only", "levels"),
    [
        ((), False, []),
        (("describe",), True, [logging.WARNING]),
        (("alter", "create"), False, [logging.INFO]),
        (("alter", "create"), True, []),
        (("describe", "alter"), False, [logging.WARNING, logging.INFO]),
    ],
)
async def test_missing_rights_are_logged(monkeypatch, caplog, operations, is_read_only, levels):
    caplog.set_level(logging.INFO, "wirebroker")
    monkeypatch.setattr(rights, "missing_cluster_rights", missing(*operations))
    await rights.log_missing_rights(collector(), is_read_only=is_read_only)
    assert [record.levelno for record in caplog.records] == levels
    for record in caplog.records:
        assert "cluster dev: the console's user, no login, lacks rights" in record.getMessage()


async def test_rights_are_logged_when_the_cluster_is_read(monkeypatch, caplog):
    monkeypatch.setattr(rights, "missing_cluster_rights", missing("describe"))
    read = collector()
    read.snapshot = read.snapshot._replace(status=ClusterStatus.FAILED, number=1)

    async def newer_than(_number: int) -> None:
        read.snapshot = read.snapshot._replace(status=ClusterStatus.OK)

    monkeypatch.setattr(read, "newer_than", newer_than)
    await rights.log_missing_rights(read, is_read_only=False)
    assert "lacks rights" in caplog.text


async def test_an_unreachable_cluster_is_logged(monkeypatch, caplog):
    async def fail(*_: Any) -> None:
        raise ClientError("no broker responds")

    monkeypatch.setattr(rights, "missing_cluster_rights", fail)
    await rights.log_missing_rights(collector(), is_read_only=False)
    assert "the console's rights are unknown: no broker responds" in caplog.text
