"""The position of a reader at the end of its range."""

from __future__ import annotations

import asyncio

from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing import Broker
from wirebroker.testing.clients.internal_client import internal_client


def test_reader_stops_at_its_end_offset_despite_more_records():
    partition = TopicPartition("orders", 0)

    async def read(address):
        async with internal_client(address) as client:
            offsets: list[int] = []

            def take(_partition, records):
                offsets.extend(record.offset for record in records)
                return True

            reader = PartitionsReader(client, {partition: 0}, take, until={partition: 2})
            await reader.run()
            return offsets, reader.positions

    with Broker() as broker:
        for number in range(4):
            broker.produce("orders", str(number))
        host, port = broker.bootstrap_servers.split(":")
        result = asyncio.run(read(PeerAddress(host, int(port))))
        assert result == ([0, 1], {partition: 2})
