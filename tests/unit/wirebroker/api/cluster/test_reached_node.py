"""ApiVersions 5 and later detect a connection to another cluster or node."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.own_cluster import FirstBroker
from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.raw_client import BlockingClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}
# For each: the cluster id and node id that the client expects ("here": the real ones), and Apache
# Kafka 4.4.0's response at a broker's listener and at a controller's.
ASKED = [
    (None, -1, ErrorCode.NONE, ErrorCode.NONE),
    ("here", 1, ErrorCode.NONE, ErrorCode.NONE),
    ("here", -1, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST),
    (None, 1, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST),
    (None, 2, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST),
    ("other", -1, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST),
    ("here", 2, ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.NONE),
    ("here", -2, ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.NONE),
    ("other", 1, ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.NONE),
    ("", 1, ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.NONE),
]


def body(cluster_id: str | None, node_id: int, own_cluster_id: str) -> dict[str, Any]:
    requested_id = own_cluster_id if cluster_id == "here" else cluster_id
    return {**SOFTWARE, "cluster_id": requested_id, "node_id": node_id}


async def test_broker_checks_the_requested_cluster_and_node_id(tmp_path: Path) -> None:
    async with running(tmp_path) as server, client_of(server) as client:
        broker = broker_of(server)
        assert broker.node_id == 1
        for cluster_id, node_id, error, _ in ASKED:
            request = body(cluster_id, node_id, broker.cluster_id)
            answer = await client.ask(ApiKey.API_VERSIONS, 5, request)
            assert answer.error_code == error, (cluster_id, node_id)
            assert bool(answer.api_keys) is (error is ErrorCode.NONE)
            if error:
                assert not answer.supported_features


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[BlockingClient]:
    with FirstBroker(tmp_path / "1") as node:
        host, _, port = node.controller.rpartition(":")
        with closing(BlockingClient((host, int(port)))) as client:
            yield client


def test_controller_does_not_check_cluster_and_node_id(controller: BlockingClient) -> None:
    for cluster_id, node_id, _, error in ASKED:
        answer = controller.ask(ApiKey.API_VERSIONS, 5, body(cluster_id, node_id, "any"))
        assert answer.error_code == error, (cluster_id, node_id)
