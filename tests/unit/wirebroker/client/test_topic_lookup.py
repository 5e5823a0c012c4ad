"""The wait for a topic that may be created on first use."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.client.errors import ClientError
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.client.topics.topic_lookup import find_topics
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.settings import PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer

PAUSE_MS = 100


class ScriptedCluster(KafkaClient):
    """A cluster that returns a topic after some rounds, with a simulated clock."""

    def __init__(self, *, is_there_after=None, makes_topics="true", refusal=0):
        clock = self.hand_clock = HandClock()
        super().__init__(
            [PeerAddress("nobody", 1)],
            timeout_s=10.0,
            dialer=TcpDialer(),
            clock=clock,
            random=Random(1),
        )
        self.looks = 0
        self._is_there_after = is_there_after
        self._answer = SimpleNamespace(
            error_code=refusal,
            error_message=None,
            configs=[
                SimpleNamespace(
                    name="auto.create.topics.enable",
                    value=makes_topics,
                    is_sensitive=False,
                    config_source=5,
                    read_only=True,
                    synonyms=[],
                )
            ],
        )

    async def tries(self):
        while self.hand_clock.passed_ms < self.timeout_s * 1000:
            yield
            self.hand_clock.passed_ms += PAUSE_MS

    async def metadata(self, topics=None, *, may_create=False):
        del may_create
        rows = []
        if topics is not None:
            self.looks += 1
            is_there = self._is_there_after is not None and self.looks > self._is_there_after
            code = 0 if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            rows = [SimpleNamespace(name=topics[0], error_code=code, partitions=[])]
        return SimpleNamespace(topics=rows, brokers=[SimpleNamespace(node_id=1)])

    async def request_of(self, broker_id, key, body, *, at_most=None, timeout_s=None):
        assert (at_most, timeout_s) == (None, None)
        assert (broker_id, key.name) == (1, "DESCRIBE_CONFIGS")
        assert body["resources"][0]["configuration_keys"] == ["auto.create.topics.enable"]
        return SimpleNamespace(results=[self._answer])


async def fails(cluster, *, may_create=True):
    with pytest.raises(ClientError, match="there is no topic orders") as caught:
        await find_topics(cluster, ["orders"], may_create=may_create)
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return cluster.hand_clock.passed_ms


async def test_no_wait_when_the_cluster_does_not_create_topics():
    assert await fails(ScriptedCluster(makes_topics="false")) == 0


async def test_no_wait_for_a_topic_that_must_not_be_created():
    assert await fails(ScriptedCluster(), may_create=False) == 0


async def test_waits_for_a_topic_being_created():
    cluster = ScriptedCluster(is_there_after=50)
    (topic,) = await find_topics(cluster, ["orders"], may_create=True)
    assert (topic.name, cluster.hand_clock.passed_ms) == ("orders", 50 * PAUSE_MS)


async def test_waits_3_seconds_when_the_cluster_config_is_not_readable():
    refusal = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert await fails(ScriptedCluster(refusal=refusal)) == 3000
    cluster = ScriptedCluster(refusal=refusal, is_there_after=5)
    assert len(await find_topics(cluster, ["orders"], may_create=True)) == 1
