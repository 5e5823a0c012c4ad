"""The node that receives a config request, as with Apache Kafka's admin client."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.client.configs.configs import (
    BROKER,
    BROKER_LOGGER,
    TOPIC,
    alter_configs,
    configs_of,
)
from wirebroker.client.errors import ClientError
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.client.settings import PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer

# The bootstrap address is node 2; node 1 is the active controller.
ADDRESSES = {number: PeerAddress("node", number) for number in (1, 2)}


class ScriptedNode:
    def __init__(self, number, requested_nodes):
        self._number = number
        self._asked = requested_nodes

    async def request(self, key, _body, *, at_most=None, timeout_s=None):
        del at_most, timeout_s
        if key is ApiKey.DESCRIBE_CLUSTER:
            nodes = [
                SimpleNamespace(broker_id=node_id, host="node", port=node_id)
                for node_id in ADDRESSES
            ]
            return SimpleNamespace(error_code=0, error_message=None, brokers=nodes, controller_id=1)
        self._asked.append(self._number)
        row = SimpleNamespace(error_code=0, error_message=None, configs=[])
        return SimpleNamespace(results=[row], responses=[row])


class ScriptedCluster(KafkaClient):
    def __init__(self):
        super().__init__(
            [ADDRESSES[2]],
            timeout_s=10.0,
            dialer=TcpDialer(),
            clock=HandClock(),
            random=Random(1),
        )
        self.asked = []

    def _node(self, address):
        return ScriptedNode(address.port, self.asked)

    async def metadata(self, topics=None, *, may_create=False):
        del topics, may_create
        assert not self.uses_controllers, "a controller does not serve Metadata"
        self._brokers = dict(ADDRESSES)


async def described(client, kind, name):
    await configs_of(client, kind, name)


async def altered(client, kind, name):
    await alter_configs(client, kind, name, {"a": "b"})


@pytest.mark.parametrize(
    ("work", "kind", "name", "of_brokers", "of_controllers"),
    [
        (described, BROKER, "1", 1, 1),
        (described, BROKER, "2", 2, 2),
        (described, BROKER, "", 2, 1),
        (described, BROKER_LOGGER, "1", 1, 1),
        (described, BROKER_LOGGER, "2", 2, 2),
        (described, TOPIC, "2", 2, 1),
        (altered, BROKER, "1", 1, 1),
        (altered, BROKER, "2", 2, 1),
        (altered, BROKER, "", 2, 1),
        (altered, BROKER_LOGGER, "1", 1, 1),
        (altered, BROKER_LOGGER, "2", 2, 2),
        (altered, TOPIC, "2", 2, 1),
    ],
)
async def test_a_request_goes_to_the_node_that_serves_it(
    *, work, kind, name, of_brokers, of_controllers
):
    client = ScriptedCluster()
    await work(client, kind, name)
    assert client.asked == [of_brokers]
    client = ScriptedCluster()
    await client.use_controllers()
    await work(client, kind, name)
    assert client.asked == [of_controllers]


@pytest.mark.parametrize("work", [described, altered])
async def test_an_unknown_controller_is_named(work):
    client = ScriptedCluster()
    await client.use_controllers()
    with pytest.raises(ClientError, match="there is no controller 7; running controllers: 1, 2"):
        await work(client, BROKER_LOGGER, "7")
    assert client.asked == []
