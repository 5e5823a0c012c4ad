"""Three voters with 100,000 partitions: how soon one becomes active, and the memory of each.

    failover   from `kill -9` of the leader to the first change that another leader has committed
    start      from the start of all three, which were killed, to the first committed change

The brokers are only registered, so that nothing but controllers uses the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from benchmarks.cluster.figures import Figure
from benchmarks.cluster.nodes import OURS, THEIRS
from benchmarks.cluster.quorums import (
    connect,
    fail_over,
    is_committed_by,
    leader_of,
    memory_mb,
    started_quorum,
)
from compat_tests.cluster.nodes import CLUSTER_ID
from tests.support.tools.ports import HOST
from wirebroker.base.clock import SystemClock, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.cluster.quorum.mixed_quorum import MixedQuorum
    from tests.support.protocol.raw_client import BlockingClient

PARTITIONS: Final = 100_000
_IN_A_TOPIC: Final = 100
# Small enough for the client's timeout, also on a busy machine.
_TOPICS_OF_A_REQUEST: Final = 5
_TURNS: Final = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
# No broker sends a second heartbeat.
_SETTINGS: Final = {"broker.session.timeout.ms": "3600000"}
_POLL_S: Final = 0.01
_TIMEOUT_S: Final = 60.0
_MOST_LONGER_S: Final = 0.5
_LEAST_MEMORY_RATIO: Final = 2.0


def measure(checkout: Path | None, pairs: int) -> list[Figure]:
    """Measure each kind in turn, so that they do not share memory."""
    name = f"{PARTITIONS:,} partitions"
    failover = Figure(f"{name}: failover", "s", most_longer=_MOST_LONGER_S, digits=2)
    start = Figure(f"{name}: start of three voters", "s", most_longer=_MOST_LONGER_S, digits=2)
    memory = Figure(f"{name}: memory of a voter", "MB", least_ratio=_LEAST_MEMORY_RATIO)
    for kind in (OURS, THEIRS):
        is_ours = kind == OURS
        with started_quorum(kind, checkout if is_ours else None, _SETTINGS) as quorum:
            began = time.monotonic()
            _create(quorum)
            print(f"  {kind}: created in {time.monotonic() - began:.0f} s", flush=True)
            for _ in range(pairs):
                for figure, value in (
                    (memory, memory_mb(quorum)),
                    (failover, fail_over(quorum, 0.0)),
                    (start, _start(quorum)),
                ):
                    (figure.ours if is_ours else figure.theirs).append(value)
                    print(f"  {kind}, {figure.name}: {value:.2f}", flush=True)
    return [failover, start, memory]


def _create(quorum: MixedQuorum) -> None:
    leader_id = leader_of(quorum)
    asyncio.run(_register_all(PeerAddress(HOST, quorum.listening[leader_id])))
    with contextlib.closing(connect(quorum, leader_id)) as client:
        count = PARTITIONS // _IN_A_TOPIC
        for first in range(0, count, _TOPICS_OF_A_REQUEST):
            _create_topics(client, range(first, min(count, first + _TOPICS_OF_A_REQUEST)))


async def _register_all(address: PeerAddress) -> None:
    node = Node(
        address,
        dialer=TcpDialer(),
        settings=ClientSettings(),
        clock=SystemClock(),
        random=random.Random(1),
    )
    for node_id in (1, 2, 3):
        await _register(node, node_id)
    await node.close()


async def _register(node: Node, node_id: int) -> None:
    """Register a broker and unfence it."""
    connection = await node.connect(_TIMEOUT_S)
    features = [
        {
            "name": feature.name,
            "min_supported_version": feature.min_version,
            "max_supported_version": feature.max_version,
        }
        for feature in connection.versions.answer.supported_features
    ]
    listener = {"name": "PLAINTEXT", "host": "localhost", "port": node_id, "security_protocol": 0}
    request: dict[str, Any] = {
        "broker_id": node_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": uuid.uuid4().bytes,
        "listeners": [listener],
        "features": features,
        "log_dirs": [uuid.uuid4().bytes],
        "previous_broker_epoch": -1,
    }
    answer = await node.request(ApiKey.BROKER_REGISTRATION, request)
    assert answer.error_code == ErrorCode.NONE, answer
    heartbeat = {
        "broker_id": node_id,
        "broker_epoch": answer.broker_epoch,
        "current_metadata_offset": answer.broker_epoch,
        "want_fence": False,
        "want_shut_down": False,
    }
    async with asyncio.timeout(_TIMEOUT_S):
        while True:
            answer = await node.request(ApiKey.BROKER_HEARTBEAT, heartbeat)
            assert answer.error_code == ErrorCode.NONE, answer
            if not answer.is_fenced:
                return
            await pause(_POLL_S)


def _create_topics(client: BlockingClient, numbers: range) -> None:
    assignments = [
        {"partition_index": index, "broker_ids": _TURNS[index % 3]} for index in range(_IN_A_TOPIC)
    ]
    topics = [
        {
            "name": f"many-{number}",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": assignments,
        }
        for number in numbers
    ]
    request = {"topics": topics, "timeout_ms": 60_000, "validate_only": False}
    answer = client.ask(ApiKey.CREATE_TOPICS, 7, request)
    assert all(topic.error_code == ErrorCode.NONE for topic in answer.topics), answer


def _start(quorum: MixedQuorum) -> float:
    """Kill all voters and start them; return seconds until a change is committed."""
    for voter in quorum.voter_nodes.values():
        voter.kill9()
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda voter: voter.start(), quorum.voter_nodes.values()))
    while not any(is_committed_by(quorum, node_id) for node_id in quorum.voter_nodes):
        time.sleep(_POLL_S)  # no event announces it
    return time.monotonic() - began
