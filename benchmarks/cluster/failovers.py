"""Failover: from `kill -9` of a leader to the first record acknowledged by another (acks=all).

The client polls node 1 every 10 ms. Kills occur at random times between two heartbeats, the same
for both kinds.
"""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING

from benchmarks.cluster.admin import Admin, until
from benchmarks.cluster.figures import Figure
from benchmarks.cluster.nodes import FIRST, OURS, SHORT_SESSIONS, THEIRS, Trio, trio
from benchmarks.load import generators
from tests.support.protocol.raw_client import BlockingClient
from tests.support.protocol.requests import PRODUCE_VERSION, produce_request
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TOPIC = "failover"
_REPLICAS = [[2, 3, 1]]
_LEADER = 2
_POLL_S = 0.01
_LONGEST_HEARTBEAT_S = 2.0
# Target: at most this much more than Kafka's median.
_MOST_LONGER_S = 0.5


def measure(checkout: Path | None, pairs: int) -> list[Figure]:
    return [
        _measure("failover, sessions of 2 s", checkout, pairs, SHORT_SESSIONS),
        _measure("failover, default sessions (9 s)", checkout, pairs, {}),
    ]


def _measure(name: str, checkout: Path | None, pairs: int, settings: Mapping[str, str]) -> Figure:
    figure = Figure(name, "s", most_longer=_MOST_LONGER_S, digits=2)
    chance = random.Random(7)
    with trio(OURS, checkout, settings) as wirebroker, trio(THEIRS, None, settings) as kafka:
        for nodes in (wirebroker, kafka):
            admin = Admin(nodes.nodes[FIRST])
            until(lambda admin=admin: admin.brokers() == {1, 2, 3})  # type: ignore[misc]
            admin.create(_TOPIC, _REPLICAS)
            admin.await_replicas(_TOPIC, _REPLICAS)
            admin.close()
        for _ in range(pairs):
            phase_s = chance.random() * _LONGEST_HEARTBEAT_S
            for values, nodes in ((figure.ours, wirebroker), (figure.theirs, kafka)):
                values.append(_fail_over(nodes, phase_s))
                print(f"  {name}: {values[-1]:.2f} s", flush=True)
    return figure


def _fail_over(nodes: Trio, phase_s: float) -> float:
    admin = Admin(nodes.nodes[FIRST])
    until(lambda: _produce(nodes.nodes[_LEADER].port))
    time.sleep(phase_s)  # another phase of the periodic work
    began = time.monotonic()
    nodes.nodes[_LEADER].kill9()
    while not _is_served(admin, nodes):
        time.sleep(_POLL_S)  # no event announces it
    took_s = time.monotonic() - began
    nodes.nodes[_LEADER].start()
    until(lambda: set(admin.partitions(_TOPIC)[0].isr_nodes) == set(_REPLICAS[0]))
    admin.elect_preferred(_TOPIC)
    admin.await_replicas(_TOPIC, _REPLICAS)
    admin.close()
    return took_s


def _is_served(admin: Admin, nodes: Trio) -> bool:
    (partition,) = admin.partitions(_TOPIC)
    if partition.leader_id in (-1, _LEADER):
        return False
    with contextlib.suppress(OSError, AssertionError):
        return _produce(nodes.nodes[partition.leader_id].port)
    return False


def _produce(port: int) -> bool:
    client = BlockingClient(("127.0.0.1", port))
    try:
        batch = generators.one_batch(records=1, record_bytes=100)
        answer = client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce_request({(_TOPIC, 0): batch}))
        return not answer.responses[0].partition_responses[0].error_code
    finally:
        client.close()
