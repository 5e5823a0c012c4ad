"""Reads of share fetches: limits of bytes, cold pages, failing disks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.protocol.requests import append
from tests.support.protocol.share_client import share_broker
from tests.support.records.batches import batch, values_in
from tests.support.tools.waiting import until
from wirebroker.codecs.errors import ErrorCode
from wirebroker.replica.replica_manager import ReplicaManager
from wirebroker.share import share_fetch
from wirebroker.share.share_reads import read_log
from wirebroker.storage.files import ColdPagesError

if TYPE_CHECKING:
    from pathlib import Path


async def test_bytes_are_shared_by_the_partitions(tmp_path: Path):
    async with share_broker(tmp_path, 2) as share:
        ann = await share.member("ann")
        for partition in (0, 1):
            for _ in range(5):
                await append(ann.client, "t", batch(b"a" * 1_000), partition=partition)
        response = await ann.fetch((0, 1), max_bytes=4_000, min_bytes=4_000, wait_ms=50)
        for result in response.responses[0].partitions:
            (acquired,) = result.acquired_records
            assert (acquired.first_offset, acquired.last_offset) == (0, 0)


async def test_first_batch_is_returned_whole(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a" * 1_000, b"b"))
        await append(ann.client, "t", batch(b"c"))
        assert await ann.acquired(max_bytes=1) == [(0, 1, 1)]


async def test_response_has_only_the_batches_of_acquired_records(tmp_path: Path):
    async with share_broker(tmp_path) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        for value in (b"a", b"b", b"c", b"d"):
            await append(ann.client, "t", batch(value))
        await ann.acquired()
        await ann.acknowledge((1, 2, [2]))
        response = await bob.fetch()
        (result,) = response.responses[0].partitions
        assert values_in(result.records) == [b"b", b"c"]


@pytest.mark.parametrize("cold_count", [1, 1_000])
async def test_cold_pages_are_loaded_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold_count: int
):
    real = read_log
    calls: list[bool] = []

    def cold(partition: Any, *arguments: Any, may_block: bool, **options: Any) -> Any:
        calls.append(may_block)
        if len(calls) <= cold_count and not may_block:
            raise ColdPagesError(partition.log.segments.active.log, 0)
        return real(partition, *arguments, may_block=may_block, **options)

    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        await ann.acquired(wait_ms=0)
        monkeypatch.setattr(share_fetch, "read_log", cold)
        await append(ann.client, "t", batch(b"b"))
        assert await ann.acquired() != []
        assert calls[-1] == (cold_count > share_fetch._MOST_WARMED)


async def test_failing_disk_is_an_error_of_the_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(5, "told to")

    async with share_broker(tmp_path) as share:
        ann = await share.member("ann")
        await append(ann.client, "t", batch(b"a"))
        await ann.acquired(wait_ms=0)
        monkeypatch.setattr(share_fetch, "read_log", broken)
        monkeypatch.setattr(ReplicaManager, "disk_failed", lambda *_: None)
        response = await ann.fetch()
        (result,) = response.responses[0].partitions
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_fetch_reads_a_partition_after_another_fetch_that_does_not_acquire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The second fetch was woken by the append, while the first one still read."""
    may_read = asyncio.Event()
    warmed: list[int] = []

    async def slow(*_: Any) -> None:
        warmed.append(1)
        await may_read.wait()

    def cold_once(partition: Any, *arguments: Any, may_block: bool, **options: Any) -> Any:
        if not warmed:
            raise ColdPagesError(partition.log.segments.active.log, 0)
        return read_log(partition, *arguments, may_block=may_block, **options)

    async with share_broker(tmp_path) as share:
        ann, bob = await share.member("ann"), await share.member("bob")
        assert await ann.acquired(wait_ms=0) == []
        assert await bob.acquired(wait_ms=0) == []
        monkeypatch.setattr(share_fetch, "in_thread", slow)
        monkeypatch.setattr(share_fetch, "read_log", cold_once)
        await append(ann.client, "t", batch(b"a"))
        wants_more = asyncio.ensure_future(ann.fetch((), min_bytes=1 << 19, wait_ms=60_000))
        await until(lambda: bool(warmed))
        waiting = asyncio.ensure_future(bob.acquired((), wait_ms=60_000))
        (found,) = share.shares.shares
        await until(lambda: found.is_wanted)
        may_read.set()
        assert await waiting == [(0, 0, 1)]
        wants_more.cancel()


async def test_error_of_a_load_is_sent_at_the_end_of_the_wait(tmp_path: Path):
    """As in Apache Kafka 4.4.0, which does not complete the fetch either."""
    async with share_broker(tmp_path) as share:
        share.persister.fails_with = ErrorCode.GROUP_ID_NOT_FOUND
        ann = await share.member("ann")
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        response = await ann.fetch(wait_ms=300)
        assert loop.time() - begin_s >= 0.29
        (result,) = response.responses[0].partitions
        assert result.error_code == ErrorCode.GROUP_ID_NOT_FOUND
