"""Reads of a job's positions survive lost requests (without Spark)."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from compat_tests.support.cutting_proxy import CuttingProxy
from spark_it.kit import records
from wirebroker.pipelines.delivery.positions import CachedPositions, Positions
from wirebroker.pipelines.job.errors import PositionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.conftest import StartBroker

pytestmark = pytest.mark.nightly  # waits for a client's request timeout

_FIND_COORDINATOR = 10


class SilentProxy(CuttingProxy):
    """A proxy that drops the next `silences` FindCoordinator requests."""

    def __init__(self) -> None:
        super().__init__()
        self.silences = 0

    def _relay_one(self, client: socket.socket, broker: socket.socket) -> bool:
        head = client.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL)
        if self.silences and int.from_bytes(head[4:6]) == _FIND_COORDINATOR:
            self.silences -= 1
            while client.recv(4_096):
                pass
            return False
        return super()._relay_one(client, broker)


@pytest.fixture
def proxy() -> Iterator[SilentProxy]:
    silent = SilentProxy()
    yield silent
    silent.close()


def test_client_is_reused_for_same_job_until_an_error(
    start_broker: StartBroker, topic: str
) -> None:
    bootstrap = start_broker().bootstrap
    records.create_topic(bootstrap, topic, partitions=1)
    positions, arguments = (
        CachedPositions(),
        ({"bootstrap.servers": bootstrap}, f"job-{topic}", topic),
    )
    with positions.lend(*arguments, "one") as first:
        first.write({0: 7})
    with positions.lend(*arguments, "one") as lent_again, Positions(*arguments, "one") as other:
        assert lent_again is first
        other.write({0: 8})
        assert lent_again.read([0]) == {0: 8}
    with pytest.raises(PositionError), positions.lend(*arguments, "two") as new_client:
        new_client.read([0])
    with positions.lend(*arguments, "two") as same_client:
        assert same_client is not new_client
    with pytest.raises(RuntimeError, match="closed"):
        first.read([0])
    positions.close()
    positions.close()


def test_unanswered_coordinator_lookup_is_retried(
    start_broker: StartBroker, proxy: SilentProxy, topic: str
) -> None:
    broker = start_broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"})
    proxy.target_port = broker.port
    kafka, job = {"bootstrap.servers": proxy.address}, f"job-{topic}"
    records.create_topic(proxy.address, topic, partitions=1)
    with Positions(kafka, job, topic, "one") as positions:
        positions.write({0: 7})
    # The client drops the first with its bootstrap connection, and waits for the second.
    proxy.silences = 2
    with Positions(kafka, job, topic, "one") as positions:
        assert positions.read([0]) == {0: 7}
    assert not proxy.silences
