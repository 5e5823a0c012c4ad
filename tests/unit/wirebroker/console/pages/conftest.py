from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.requests import Reply, request
from wirebroker.base.clock import SystemClock
from wirebroker.console.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.console.model.snapshot import ClusterSnapshot


class Site:
    """An application over clusters with given snapshots."""

    def __init__(self, *snapshots: ClusterSnapshot) -> None:
        self.collectors = [fake.FakeCollector(snapshot) for snapshot in snapshots]
        collectors: Any = self.collectors
        self.app: Any = make_app(collectors, SystemClock())

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Reply:
        return await request(self.app, url, headers=headers)

    async def page(self, url: str) -> str:
        """Return a page that must be there."""
        reply = await self.get(url)
        assert reply.status == 200, reply.text
        return reply.text


@pytest.fixture
def site() -> Site:
    """Return a site with one healthy cluster."""
    orders = fake.topic("orders", groups=("billing",))
    return Site(fake.snapshot(topics=[orders], groups=[fake.group("billing")]))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str, Any], None]:
    """Return a function that replaces a request to the cluster by a value or an error."""

    def replace(module: Any, name: str, value: Any) -> None:
        def answer(*_: Any) -> Awaitable[Any]:
            async def respond() -> Any:
                if isinstance(value, Exception):
                    raise value
                return value

            return respond()

        monkeypatch.setattr(module, name, answer)

    return replace
