"""The number of records that were written between two times."""

from __future__ import annotations

import pytest

from tests.support.brokers.collectors import collecting
from tests.support.brokers.servers import ONE_NODE, running
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import partitions_of
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.records import written
from wirebroker.console.records.written import WrittenRange, WrittenRanges, written_between


async def test_offsets_between_two_times_are_counted_by_partition(tmp_path):
    async with running(tmp_path, settings=ONE_NODE) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as c:
            await create_topics(c.client, {"orders": 2}, configs={})
            writer = TopicWriter(c.client, "orders", Codec.NONE)
            await writer.open()
            for time_ms in (1000, 2000, 3000):
                await writer.write([(0, (None, b"v", []))], timestamp_ms=time_ms)
            await writer.write([(1, (None, b"v", []))], timestamp_ms=2500)
            found = await written_between(c.client, "orders", 2000, 3000)
            assert found.ranges == [WrittenRange(0, 1, 2), WrittenRange(1, 0, 1)]
            found = await written_between(c.client, "orders", 0, None)
            assert [row.offsets for row in found.ranges] == [3, 1]
            found = await written_between(c.client, "orders", 9999, None)
            assert [row.offsets for row in found.ranges] == [0, 0]


async def test_timestamps_that_fall_make_the_number_differ(tmp_path):
    async with running(tmp_path, settings=ONE_NODE) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as c:
            await create_topics(c.client, {"orders": 1}, configs={})
            writer = TopicWriter(c.client, "orders", Codec.NONE)
            await writer.open()
            for time_ms in (1000, 9000, 2000, 2500, 2600):
                await writer.write([(0, (None, b"v", []))], timestamp_ms=time_ms)
            # The record with 9000 is the first one at or after both times.
            found = await written_between(c.client, "orders", 1500, 3000)
            assert found.ranges == [WrittenRange(0, 1, 1)]


async def test_partitions_without_a_leader_are_not_counted(tmp_path, monkeypatch):
    async with running(tmp_path, settings=ONE_NODE) as server:
        host, port = server.address
        async with collecting(f"{host}:{port}") as c:
            await create_topics(c.client, {"orders": 2}, configs={})
            leaders = await partitions_of(c.client, ["orders"])
            lost = {place: -1 if place.partition == 1 else 1 for place in leaders}

            async def without_leaders(*_):
                return lost

            monkeypatch.setattr(written, "partitions_of", without_leaders)
            found = await written_between(c.client, "orders", 0, None)
            assert found == WrittenRanges([WrittenRange(0, 0, 0)], [1])
            lost = dict.fromkeys(leaders, -1)
            assert await written_between(c.client, "orders", 0, None) == WrittenRanges([], [0, 1])


@pytest.mark.parametrize(("first", "end", "count"), [(5, 9, 4), (9, 9, 0), (9, 5, 0)])
def test_a_range_is_never_negative(first: int, end: int, count: int):
    assert WrittenRange(0, first, end).offsets == count
