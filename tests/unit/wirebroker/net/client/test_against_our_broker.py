"""The client over real sockets to a broker on the same loop."""

from random import Random

import pytest

from tests.support.brokers.servers import running
from tests.support.records.batches import batch, values_in
from tests.support.tools.waiting import until
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.client.connection import PeerConnection
from wirebroker.net.client.errors import CannotConnectError, UnsupportedVersionError
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer


def node_of(server, **settings):
    return Node(
        PeerAddress(*server.address),
        dialer=TcpDialer(),
        settings=ClientSettings(**settings),
        clock=SystemClock(),
        random=Random(1),
    )


async def test_produced_records_are_fetched_without_a_copy(tmp_path):
    async with running(tmp_path) as server:
        node = node_of(server)
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        created = await node.request(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 5000})
        topic_id = created.topics[0].topic_id
        records = batch(b"a" * 300_000, b"b" * 300_000)
        data = {"topic_id": topic_id, "partition_data": [{"index": 0, "records": records}]}
        produced = await node.request(
            ApiKey.PRODUCE, {"acks": -1, "timeout_ms": 5000, "topic_data": [data]}
        )
        assert produced.responses[0].partition_responses[0].error_code == 0
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        fetched = await node.request(
            ApiKey.FETCH,
            {"max_bytes": 1 << 20, "topics": [{"topic_id": topic_id, "partitions": [partition]}]},
        )
        fetched_records = fetched.responses[0].partitions[0].records
        assert isinstance(fetched_records, memoryview)
        assert values_in(bytes(fetched_records)) == [b"a" * 300_000, b"b" * 300_000]
        await node.close()


async def test_node_reconnects_when_the_broker_restarts(tmp_path):
    async with running(tmp_path) as server:
        node = node_of(server)
        await node.request(ApiKey.METADATA, {"topics": []})
        port = server.address[1]
    await until(lambda: not node.is_connected)
    with pytest.raises(CannotConnectError, match=f"127.0.0.1:{port}: connection refused"):
        await node.request(ApiKey.METADATA, {"topics": []})
    async with running(tmp_path, settings={"listeners": f"PLAINTEXT://127.0.0.1:{port}"}):
        answer = await node.request(ApiKey.METADATA, {"topics": []})
        assert [broker.port for broker in answer.brokers] == [port]
        await node.close()


async def test_connection_knows_broker_versions_and_its_own_address(tmp_path):
    async with running(tmp_path) as server:
        connection = await PeerConnection.open(
            PeerAddress(*server.address),
            dialer=TcpDialer(),
            settings=ClientSettings(),
            clock=SystemClock(),
        )
        assert connection.local_host == "127.0.0.1"
        assert connection.version_of(ApiKey.FETCH) == 18
        with pytest.raises(UnsupportedVersionError):
            connection.version_of(ApiKey.VOTE)
        finalized = {feature.name for feature in connection.versions.answer.finalized_features}
        assert "metadata.version" in finalized
        await connection.close()


async def test_unknown_host_is_reported():
    node = Node(
        PeerAddress("no-such-host.invalid", 9092),
        dialer=TcpDialer(),
        settings=ClientSettings(),
        clock=SystemClock(),
        random=Random(1),
    )
    with pytest.raises(CannotConnectError, match=r"no-such-host\.invalid:9092: "):
        await node.request(ApiKey.METADATA, {"topics": []})
    await node.close()
