"""Share groups (KIP-932): ten members fetch and acknowledge records of 1 KiB.

    python -m benchmarks.scenarios.share_groups [--ours CHECKOUT] [--pairs 5] [--records 100000]
        [--against CHECKOUT]

Both brokers take turns (A B A B); each run is a new group over the same filled topic. The figures
are acknowledged records a second, and the broker's CPU per record, including its writes of the
share state. The target is Kafka's rate at 0.6 of its CPU; status 1 if missed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.load import generators
from benchmarks.load.growth_requests import await_leaders, client_of, create_topic
from benchmarks.load.share_consumers import Consumption, consume
from benchmarks.measurement.brokers import side_by_side, version
from benchmarks.measurement.machine import describe
from benchmarks.measurement.pairs import Sample, measure
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from benchmarks.measurement.pairs import Pairs
    from tests.support.brokers.brokers import Broker
    from tests.support.protocol.raw_client import BlockingClient

_TOPIC: Final = "shared"
_RECORD_BYTES: Final = 1024
_GROUP_RESOURCE: Final = 32
_SET: Final = 0
# Targets: Kafka's CPU divided by ours, and our rate divided by Kafka's.
_CPU_RATIO: Final = 1 / 0.6
_RATE_RATIO: Final = 1.0


class ShareGroupCase:
    """The case; each run is a new group."""

    def __init__(self, *, members: int, processes: int, partitions: int, records: int) -> None:
        self._members = members
        self._processes = processes
        self._partitions = partitions
        self._records = records
        self._filled: set[int] = set()
        self._numbers = itertools.count()

    def prepare(self, broker: Broker) -> str:
        """Fill the topic once; return the name of a new group that reads it from its start."""
        client = client_of(broker)
        if broker.process_id not in self._filled:
            create_topic(client, _TOPIC, self._partitions)
            generators.librdkafka(
                broker,
                _TOPIC,
                "produce",
                {
                    "records": self._records,
                    "record_bytes": _RECORD_BYTES,
                    "config": {"batch.size": 16_384},
                },
            )
            await_leaders(client, _TOPIC, self._partitions)
            self._filled.add(broker.process_id)
        group = f"group-{next(self._numbers):06d}"
        config = {"name": "share.auto.offset.reset", "value": "earliest", "config_operation": _SET}
        resource = {
            "resource_type": _GROUP_RESOURCE,
            "resource_name": group,
            "configs": [config],
        }
        body = {"resources": [resource]}
        answer = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)
        assert answer.responses[0].error_code == ErrorCode.NONE, answer
        _await_coordinator(client, group)
        client.close()
        return group

    def run(self, broker: Broker, topic: str) -> Sample:
        """Consume all records; `topic` is the group's name."""
        wanted = Consumption(broker.port, topic, _TOPIC, self._partitions, self._records)
        return Sample(self._records, consume(wanted, self._members, self._processes))

    def clean(self, broker: Broker, topic: str) -> None:
        """Leave the group; its members' sessions end."""


def _await_coordinator(client: BlockingClient, group: str) -> None:
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        body = {"key_type": 0, "coordinator_keys": [group]}
        answer = client.ask(ApiKey.FIND_COORDINATOR, 4, body)
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            return
        time.sleep(0.2)  # no event announces it
    raise RuntimeError("there is no coordinator after a minute")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")
    parser.add_argument("--against", type=Path, help="a checkout instead of Apache Kafka")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2, help="of the load generator")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--records", type=int, default=100_000)
    options = parser.parse_args()
    case = ShareGroupCase(
        members=options.members,
        processes=options.processes,
        partitions=options.partitions,
        records=options.records,
    )
    print(f"{version(options.ours)}; {describe()}")
    with side_by_side(options.ours, options.against, None) as (ours, theirs, _):
        pairs = measure(case, ours, theirs, options.pairs)
    return _report(pairs)


def _report(pairs: Pairs) -> int:
    for name, runs in (("ours", pairs.ours), ("theirs", pairs.theirs)):
        for run in runs:
            print(f"{name}: {run.rate:,.0f} records/s, {run.cpu_us:.2f} us of CPU per record")
    cpu, rate = pairs.cpu_ratio(), pairs.rate_ratio()
    print(f"CPU ratio {cpu} (target {_CPU_RATIO:.2f}), rate ratio {rate} (target {_RATE_RATIO})")
    return int(cpu.median < _CPU_RATIO or rate.median < _RATE_RATIO)


if __name__ == "__main__":
    sys.exit(main())
