"""Members of groups that only send heartbeats: CPU of each, memory of a member.

    python -m benchmarks.scenarios.group_heartbeats [--kind consumer|share|streams]
        [--members 10000] [--groups 100] [--connections 500] [--seconds 30] [--ours CHECKOUT]
        [--apache]

All members join and are assigned their partitions. Then each sends a heartbeat every five seconds,
evenly spread. The broker's CPU in between is divided by the number of heartbeats. `--apache` runs
Apache Kafka after it and prints the ratio. The target is half of Kafka's CPU; status 1 if missed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.load.group_members import KINDS, TOPIC
from benchmarks.measurement.brokers import SETTINGS, Checkout, apache_kafka
from benchmarks.measurement.machine import cpu_seconds, describe, resident_mb
from tests.support.protocol.raw_client import RawClient
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from benchmarks.load.group_members import GroupMember
    from tests.support.brokers.brokers import Broker

_INTERVAL_S: Final = 5.0
# The target, as a fraction of Kafka's CPU per heartbeat.
_TARGET: Final = 0.5
_MOST_ROUNDS: Final = 60
_GROUP_SETTINGS: Final = {
    "offsets.topic.replication.factor": "1",
    # Joins take their time; no session may end meanwhile.
    **{
        f"group.{kind}.{limit}session.timeout.ms": "600000"
        for kind in KINDS
        for limit in ("max.", "")
    },
    "group.streams.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Figures(NamedTuple):
    """Measurements of one broker."""

    cpu_us: float  # per heartbeat
    memory_kib: float  # per member
    heartbeats: int

    def __str__(self) -> str:
        return (
            f"{self.cpu_us:.0f} us of CPU per heartbeat ({self.heartbeats} of them), "
            f"{self.memory_kib:.1f} KiB of memory per member"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=tuple(KINDS), default="consumer")
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")
    parser.add_argument("--apache", action="store_true", help="compare with Apache Kafka")
    options = parser.parse_args()
    print(describe())
    settings = {**SETTINGS, **_GROUP_SETTINGS}
    with tempfile.TemporaryDirectory(prefix="wirebroker-heartbeats-") as name:
        folder = Path(name)
        ours = _measured(Checkout(folder / "ours", options.ours, settings), options)
        print(f"wirebroker: {ours}", flush=True)
        if not options.apache:
            return 0
        theirs = _measured(apache_kafka(folder / "theirs", settings), options)
    ratio = ours.cpu_us / theirs.cpu_us
    print(f"Apache Kafka: {theirs}\nCPU ratio {ratio:.2f}{'' if ratio <= _TARGET else ' MISSED'}")
    return int(ratio > _TARGET)


def _measured(broker: Broker, options: argparse.Namespace) -> Figures:
    broker.start()
    try:
        return asyncio.run(_measure(broker, options))
    finally:
        broker.stop()


async def _measure(broker: Broker, options: argparse.Namespace) -> Figures:
    per_group = options.members // options.groups
    kind = KINDS[options.kind]
    members = [
        kind(f"group{number % options.groups}", f"member{number}")
        for number in range(options.members)
    ]
    address = ("127.0.0.1", broker.port)
    clients = [await RawClient.connect(address) for _ in range(options.connections)]
    await _prepare(clients[0], per_group)
    before_mb = resident_mb(broker.process_id)
    for _ in range(_MOST_ROUNDS):
        restless = [member for member in members if not member.is_at_rest]
        if not restless:
            break
        await _beat_all(clients, restless, over_s=0.0)
    assert not restless, f"{len(restless)} members are not at rest"
    memory_kib = (resident_mb(broker.process_id) - before_mb) * 1024 / len(members)
    await _beat_all(clients, members, over_s=_INTERVAL_S)
    began_cpu_s, ends = cpu_seconds(broker.process_id), time.monotonic() + options.seconds
    count = 0
    while time.monotonic() < ends:
        await _beat_all(clients, members, over_s=_INTERVAL_S)
        count += len(members)
    cpu_us = (cpu_seconds(broker.process_id) - began_cpu_s) / count * 1e6
    return Figures(cpu_us, memory_kib, count)


async def _prepare(client: RawClient, partitions: int) -> None:
    """Create the topics, so that each member gets one partition."""
    topic = {"name": TOPIC, "num_partitions": partitions, "replication_factor": 1}
    body = {"topics": [topic], "timeout_ms": 60_000}
    created = await client.ask(ApiKey.CREATE_TOPICS, 7, body)
    assert created.topics[0].error_code == ErrorCode.NONE, created
    find = {"key_type": 0, "coordinator_keys": ["group0"]}
    for _ in range(_MOST_ROUNDS):
        answer = await client.ask(ApiKey.FIND_COORDINATOR, 4, find)
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            return
        await pause(0.5)
    raise AssertionError("there is no coordinator")


async def _beat_all(clients: list[RawClient], members: list[GroupMember], *, over_s: float) -> None:
    """Send a heartbeat for each member, spread over a time, one at a time on a connection."""
    began = time.monotonic()
    step_s = over_s / len(members)

    async def beat(first: int) -> None:
        for number in range(first, len(members), len(clients)):
            wait_s = began + number * step_s - time.monotonic()
            if wait_s > 0:
                await pause(wait_s)
            await members[number].beat(clients[first])

    await asyncio.gather(*(beat(number) for number in range(min(len(clients), len(members)))))
    if over_s:
        await pause(max(0.0, began + over_s - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
