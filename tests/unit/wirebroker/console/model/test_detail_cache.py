"""Details that viewers share."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.client.errors import ClientError
from wirebroker.console.model.detail_cache import DetailCache


class Source:
    """Counts how often it is read."""

    def __init__(self) -> None:
        self.count = 0
        self.is_open = asyncio.Event()

    async def read(self) -> int:
        self.count += 1
        await self.is_open.wait()
        return self.count

    async def fail(self) -> int:
        self.count += 1
        raise ClientError("refused")


async def test_viewers_share_what_is_read_for_five_seconds():
    clock, source = HandClock(), Source()
    cache = DetailCache(clock)
    waiting = [asyncio.create_task(cache.get("acls", source.read)) for _ in range(10)]
    source.is_open.set()
    assert await asyncio.gather(*waiting) == [1] * 10
    clock.passed_ms += 4999
    assert await cache.get("acls", source.read) == 1
    assert await cache.get("users", source.read) == 2
    clock.passed_ms += 1
    assert await cache.get("acls", source.read) == 3


async def test_failures_are_not_kept():
    cache, source = DetailCache(HandClock()), Source()
    for _ in range(2):
        with pytest.raises(ClientError, match="refused"):
            await cache.get("acls", source.fail)
    assert source.count == 2


async def test_a_viewer_that_leaves_does_not_stop_the_others():
    cache, source = DetailCache(HandClock()), Source()
    leaving = asyncio.create_task(cache.get("acls", source.read))
    staying = asyncio.create_task(cache.get("acls", source.read))
    await asyncio.sleep(0)  # noqa: TID251 - both have begun
    leaving.cancel()
    source.is_open.set()
    assert await staying == 1
    assert leaving.cancelled() or leaving.cancelling()
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_closing_stops_what_is_being_read():
    cache, source = DetailCache(HandClock()), Source()
    waiting = asyncio.create_task(cache.get("acls", source.read))
    await asyncio.sleep(0)  # noqa: TID251 - it has begun
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_old_details_are_dropped():
    clock, source = HandClock(), Source()
    cache = DetailCache(clock)
    source.is_open.set()
    for number in range(300):
        await cache.get(number, source.read)
    assert await cache.get(0, source.read) == 301


async def test_a_reading_that_began_before_a_change_is_not_joined_after_it():
    cache, source = DetailCache(HandClock()), Source()
    before = asyncio.create_task(cache.get("acls", source.read))
    await asyncio.sleep(0)  # noqa: TID251 - it has begun
    cache.forget()
    after = asyncio.create_task(cache.get("acls", source.read))
    await asyncio.sleep(0)  # noqa: TID251 - it has begun
    source.is_open.set()
    await asyncio.gather(before, after)
    assert source.count == 2
    assert await cache.get("acls", source.read) == 2
    cache.forget()
    assert await cache.get("acls", source.read) == 3


async def test_closing_stops_readings_from_before_a_change():
    cache, source = DetailCache(HandClock()), Source()
    waiting = asyncio.create_task(cache.get("acls", source.read))
    await asyncio.sleep(0)  # noqa: TID251 - it has begun
    cache.forget()
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
