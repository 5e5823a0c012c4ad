"""Host name lookups: which callers wait, and for how long."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import world
from wirebroker.net.listeners import host_lookup
from wirebroker.net.listeners.host_lookup import HostLookup

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LIMITS = "max.connections.per.ip.overrides"


async def test_names_are_looked_up_and_unknown_ones_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hosts = HostLookup()
    changes: list[dict[str, str]] = []
    too_long = f"{'x' * 64}.example"
    names = ["10.0.0.1", "no.such.host.invalid", too_long, "localhost"]
    for _ in range(2):  # known ones change nothing
        await hosts.look_up(names, lambda: changes.append(dict(hosts.addresses)))
        assert hosts._task is not None
        await hosts._task
    assert hosts.addresses.keys() == {"localhost"}
    assert changes == [hosts.addresses]
    assert "cannot resolve no.such.host.invalid" in caplog.text
    assert f"cannot resolve {too_long}" in caplog.text


async def test_silent_name_server_does_not_delay_other_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go = threading.Event(), threading.Event()

    def slow(_host: str) -> str:
        began.set()
        assert go.wait(PATIENCE_S)
        return "10.0.0.7"

    monkeypatch.setattr(host_lookup, "first_address", slow)
    monkeypatch.setattr(host_lookup, "PATIENCE_S", 0.01)
    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        table = w.server.reception.table
        assert table is not None
        await w.set((LIMITS, "somewhere:3,10.0.0.1:5"))
        assert await asyncio.to_thread(began.wait, PATIENCE_S)
        assert table.settings.max_connections_per_ip_overrides == {"10.0.0.1": 5}
        await w.topic("meanwhile")
        assert w.server.listeners is not None
        task = w.server.listeners._hosts._task
        assert task is not None
        go.set()
        await task
        assert table.settings.max_connections_per_ip_overrides == {"10.0.0.7": 3, "10.0.0.1": 5}
