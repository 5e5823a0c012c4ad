"""Few long requests are served at a time, and addresses take turns."""

from __future__ import annotations

import asyncio

import pytest

from wirebroker.base.clock import next_turn
from wirebroker.net.bounds.long_request_limit import MOST_BYTES, LongRequestLimit

HALF = MOST_BYTES // 2


class Clients:
    def __init__(self) -> None:
        self.line = LongRequestLimit()
        self.served: list[str] = []
        self.most_bytes = 0
        self._bytes = 0

    async def serve(self, name: str, size: int, address: str, end: asyncio.Event) -> None:
        await self.line.enter(address, size)
        self.served.append(name)
        self._bytes += size
        self.most_bytes = max(self.most_bytes, self._bytes)
        try:
            await end.wait()
        finally:
            self._bytes -= size
            self.line.leave(size)

    def begin(
        self, name: str, size: int, address: str = "10.0.0.1"
    ) -> tuple[asyncio.Task[None], asyncio.Event]:
        end = asyncio.Event()
        return asyncio.ensure_future(self.serve(name, size, address, end)), end


async def settle() -> None:
    for _ in range(5):
        await next_turn()


async def test_requests_beyond_the_capacity_wait() -> None:
    clients = Clients()
    tasks = [clients.begin(f"{number}", HALF) for number in range(6)]
    await settle()
    assert clients.served == ["0", "1"]
    for _, end in tasks:
        end.set()
    await asyncio.gather(*(task for task, _ in tasks))
    assert clients.served == ["0", "1", "2", "3", "4", "5"]
    assert clients.most_bytes == MOST_BYTES


async def test_request_larger_than_the_capacity_is_served_alone() -> None:
    clients = Clients()
    (small, small_end) = clients.begin("small", 1)
    (large, large_end) = clients.begin("large", 10 * MOST_BYTES)
    (later, later_end) = clients.begin("later", 1)
    await settle()
    assert clients.served == ["small"]
    small_end.set()
    await settle()
    assert clients.served == ["small", "large"]
    large_end.set()
    later_end.set()
    await asyncio.gather(small, large, later)
    assert clients.served == ["small", "large", "later"]


async def test_addresses_are_served_round_robin() -> None:
    clients = Clients()
    tasks = [clients.begin(f"many {number}", MOST_BYTES) for number in range(10)]
    tasks.append(clients.begin("other", MOST_BYTES, "10.0.0.2"))
    await settle()
    for _, end in tasks:
        end.set()
    await asyncio.gather(*(task for task, _ in tasks))
    # One is being served and one is next already.
    assert clients.served.index("other") <= 3


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_cancelled_request_frees_its_capacity(turns: int) -> None:
    clients = Clients()
    first, end = clients.begin("first", MOST_BYTES)
    given_up, _ = clients.begin("given up", MOST_BYTES)
    last, last_end = clients.begin("last", MOST_BYTES)
    await settle()
    end.set()
    for _ in range(turns):
        await next_turn()
    given_up.cancel()
    await asyncio.wait([given_up])
    last_end.set()
    await asyncio.gather(first, last)
    assert clients.served[-1] == "last"
