"""Three voters without brokers: failover of the active controller, commits, CPU, memory.

    failover   from `kill -9` of the leader to the first change that another leader has committed
    commits    changes of one dynamic config, by several connections to the leader, each waiting
               for its response; a commit is on the disks of two voters

Every voter has default timeouts. Changes go to the controllers' listeners (KIP-919).
"""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from benchmarks.cluster.admin import until
from benchmarks.cluster.figures import Figure
from benchmarks.cluster.nodes import OURS, THEIRS
from benchmarks.measurement.brokers import KAFKA_HEARTBEATS, KAFKA_JVM, of_checkout
from benchmarks.measurement.machine import cpu_seconds, resident_mb
from compat_tests.cluster.quorum.mixed_quorum import MixedQuorum, ProxiedJava, ProxiedOwn
from tests.support.brokers.brokers import java_tool
from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.ports import HOST
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compat_tests.cluster.quorum.mixed_quorum import Kind

_DEFAULT_TIMEOUTS: Final = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
}
_CONNECTIONS: Final = 16
_SECONDS: Final = 8.0
_POLL_S: Final = 0.01
# Targets: as soon as Kafka's, and 40 MB instead of its 200.
_MOST_LONGER_S: Final = 0.5
_LEAST_MEMORY_RATIO: Final = 5.0


class _Theirs(ProxiedJava):
    """Apache Kafka as its scripts start it."""

    def _command(self) -> list[str]:
        return [*java_tool("-Xmx1G", "kafka.Kafka", KAFKA_JVM), str(self.properties)]


class _Ours(ProxiedOwn):
    checkout: Path | None = None

    def _command(self) -> list[str]:
        return of_checkout(super()._command(), self.checkout)


def measure(checkout: Path | None, pairs: int) -> list[Figure]:
    failover = Figure("controller failover", "s", most_longer=_MOST_LONGER_S, digits=2)
    rate = Figure("metadata commits", "/s", is_more_better=True)
    cpu = Figure("metadata commit: CPU of three voters", "us")
    memory = Figure("voter: memory", "MB", least_ratio=_LEAST_MEMORY_RATIO)
    chance = random.Random(7)
    with started_quorum(OURS, checkout) as ours, started_quorum(THEIRS, None) as theirs:
        for _ in range(pairs):
            phase_s = chance.random()
            for kind, quorum in ((OURS, ours), (THEIRS, theirs)):
                is_ours = kind == OURS
                committed, cpu_us = _commits(quorum)
                for figure, value in (
                    (rate, committed),
                    (cpu, cpu_us),
                    (memory, memory_mb(quorum)),
                    (failover, fail_over(quorum, phase_s)),
                ):
                    (figure.ours if is_ours else figure.theirs).append(value)
                    print(f"  {kind}, {figure.name}: {value:.2f}", flush=True)
    return [failover, rate, cpu, memory]


@contextlib.contextmanager
def started_quorum(
    kind: str, checkout: Path | None, more_settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[MixedQuorum]:
    """Start three voters of a kind (OURS, of a checkout, or THEIRS)."""
    with tempfile.TemporaryDirectory(prefix=f"wirebroker-quorum-{kind}-") as name:
        voter_kind: Kind = "wirebroker" if kind == OURS else "apache"
        settings = {**KAFKA_HEARTBEATS, **_DEFAULT_TIMEOUTS, **more_settings}
        quorum = MixedQuorum(Path(name), [voter_kind] * 3, settings, has_proxies=False)
        for node_id in quorum.voter_nodes:
            node = _Ours(quorum, node_id) if kind == OURS else _Theirs(quorum, node_id)
            if isinstance(node, _Ours):
                node.checkout = checkout
            quorum.voter_nodes[node_id] = node
        try:
            quorum.start()
            yield quorum
        finally:
            quorum.stop()


def _change(client: BlockingClient, value: int) -> bool:
    """Change the cluster's default of a config; return whether that is committed."""
    config = {"name": "log.retention.ms", "config_operation": 0, "value": str(value)}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    request = {"resources": [resource], "validate_only": False}
    answer = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    return not answer.responses[0].error_code


def connect(quorum: MixedQuorum, node_id: int) -> BlockingClient:
    """Connect to a voter."""
    return BlockingClient((HOST, quorum.listening[node_id]), timeout_s=10)


def fail_over(quorum: MixedQuorum, phase_s: float) -> float:
    """Kill the leader; return seconds until another one has committed a change."""
    leader_id = leader_of(quorum)
    time.sleep(phase_s)  # another phase of the periodic work
    began = time.monotonic()
    quorum.voter_nodes[leader_id].kill9()
    others = [node_id for node_id in quorum.voter_nodes if node_id != leader_id]
    while not any(is_committed_by(quorum, node_id) for node_id in others):
        time.sleep(_POLL_S)  # no event announces it
    took_s = time.monotonic() - began
    quorum.voter_nodes[leader_id].start()
    until(lambda: has_all(quorum))
    return took_s


def leader_of(quorum: MixedQuorum) -> int:
    """Wait for the leader and return it."""
    until(lambda: quorum.leader() is not None)
    leader_id = quorum.leader()
    assert leader_id is not None
    return leader_id


def has_all(quorum: MixedQuorum) -> bool:
    """Return whether all voters have all committed records."""
    status = quorum.status(leader_of(quorum))
    return status is not None and all(end >= status[0] for end in status[1].values())


def is_committed_by(quorum: MixedQuorum, node_id: int) -> bool:
    """Return whether a voter commits a change, as the leader."""
    try:
        with contextlib.closing(connect(quorum, node_id)) as client:
            return _change(client, random.randrange(1, 1 << 40))
    except (OSError, AssertionError):
        return False


def _commits(quorum: MixedQuorum) -> tuple[float, float]:
    """Return commits a second, and microseconds of CPU of each."""
    leader_id = leader_of(quorum)
    counts = [0] * _CONNECTIONS
    end = time.monotonic() + _SECONDS

    def work(index: int) -> None:
        with contextlib.closing(connect(quorum, leader_id)) as client:
            while time.monotonic() < end:
                assert _change(client, (index << 32) + counts[index] + 1)
                counts[index] += 1

    process_ids = [node.process_id for node in quorum.voter_nodes.values()]
    before = sum(map(cpu_seconds, process_ids))
    threads = [threading.Thread(target=work, args=(index,)) for index in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpu_s = sum(map(cpu_seconds, process_ids)) - before
    assert all(counts), counts
    return sum(counts) / _SECONDS, cpu_s / sum(counts) * 1e6


def memory_mb(quorum: MixedQuorum) -> float:
    """Return the average memory of a voter."""
    values = [resident_mb(node.process_id) for node in quorum.voter_nodes.values()]
    return sum(values) / len(values)
