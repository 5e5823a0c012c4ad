"""The time from the death of the active controller and a leader to the next acks=all record.

    kill -9 of broker 1 and of the active controller at the same time
      -> the other voters elect an active controller
      -> the session of broker 1 ends: it leaves the ISR, and another replica leads
      -> a record with acks=all is acknowledged

The brokers are wirebrokers, the voters of one kind. All have Kafka's default timeouts.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from compat_tests.cluster.quorum.active_controller import ActiveController
from compat_tests.cluster.quorum.mixed_quorum import Kind, MixedQuorum
from compat_tests.cluster.replicated_load import all_in_sync, create
from tests.support.protocol.raw_client import BlockingClient
from tests.support.protocol.requests import PRODUCE_VERSION, produce_request
from tests.support.records.batches import batch
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPIC: Final = "t"
_LEADER: Final = 1
SETTINGS: Final = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "replica.lag.time.max.ms": "30000",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
}
_POLL_S: Final = 0.02
_WAIT_S: Final = 90.0


@contextlib.contextmanager
def cluster(folder: Path, kind: Kind) -> Iterator[MixedQuorum]:
    """Start three voters of a kind and three brokers, with a topic of three replicas."""
    quorum = MixedQuorum(folder, [kind] * 3, SETTINGS, has_proxies=False)
    try:
        quorum.start()
        for node_id in (1, 2, 3):
            quorum.wirebroker(node_id)
        create(quorum, {TOPIC: (1, 2, 3)})
        yield quorum
    finally:
        quorum.stop()


def resumption_s(quorum: MixedQuorum) -> float:
    """Kill the leader and the active controller; return seconds until a record is acknowledged."""
    all_in_sync(quorum, [TOPIC])
    leader_id = _leader(quorum)
    active, broker = ActiveController(quorum), quorum.brokers[leader_id]
    active.kill9()
    broker.kill9()
    began = time.monotonic()
    others = [node_id for node_id in quorum.brokers if node_id != leader_id]
    eventually(
        lambda: any(_is_acknowledged(quorum, node_id) for node_id in others),
        timeout_s=_WAIT_S,
        poll_s=_POLL_S,
    )
    took_s = time.monotonic() - began
    active.start()
    broker.start()
    return took_s


def _leader(quorum: MixedQuorum) -> int:
    with contextlib.closing(BlockingClient((HOST, quorum.brokers[_LEADER].port))) as client:
        request = {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}
        (topic,) = client.ask(ApiKey.METADATA, 9, request).topics
    return int(topic.partitions[0].leader_id)


def _is_acknowledged(quorum: MixedQuorum, node_id: int) -> bool:
    """Send a record to a broker; return whether it leads and has stored it on the whole ISR."""
    with contextlib.suppress(OSError):
        address = (HOST, quorum.brokers[node_id].port)
        with contextlib.closing(BlockingClient(address, timeout_s=_WAIT_S)) as client:
            request = produce_request({(TOPIC, 0): batch(b"one")}, acks=-1)
            answer = client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
            return not answer.responses[0].partition_responses[0].error_code
    return False
