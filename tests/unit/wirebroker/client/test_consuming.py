"""The position of a reader at the end of its range."""

from __future__ import annotations

import asyncio

from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.net.client.settings import PeerAddress
from wirebroker.testing import Broker
from wirebroker.testing.clients.kit_client import kit_client


def test_a_reader_stands_where_it_was_to_end_though_more_has_come():
    place = TopicPartition("orders", 0)

    async def read(address):
        async with kit_client(address) as client:
            found: list[int] = []

            def take(_place, records):
                found.extend(record.offset for record in records)
                return True

            reader = PartitionsReader(client, {place: 0}, take, until={place: 2})
            await reader.run()
            return found, reader.positions

    with Broker() as broker:
        for number in range(4):
            broker.produce("orders", str(number))
        host, port = broker.bootstrap_servers.split(":")
        found = asyncio.run(read(PeerAddress(host, int(port))))
        assert found == ([0, 1], {place: 2})
