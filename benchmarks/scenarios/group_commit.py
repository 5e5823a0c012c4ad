"""Acknowledgments a second if each means "on disk", and the latency of fetches meanwhile.

    python -m benchmarks.scenarios.group_commit [--partitions 1 50 500] [--connections 500]
        [--seconds 5]

wirebroker with wirebroker.durability=fsync and Apache Kafka with flush.messages=1 run in turn on
one disk. Every connection sends a record of 200 bytes with acks=all, one at a time; connections are
spread over the partitions. Every 5 ms another process fetches a cached record.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.load.generators import one_batch, raw_produce
from benchmarks.measurement.brokers import apache_kafka
from tests.support.brokers.brokers import Wirebroker
from tests.support.protocol.raw_client import BlockingClient, RawClient, request_frame
from tests.support.protocol.requests import (
    FETCH_VERSION,
    append,
    create_topic,
    fetch_request,
)
from tests.support.records.batches import batch
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

    from tests.support.brokers.brokers import Broker

TOPIC, READ_TOPIC = "written", "read"
_WARM_UP_S = 1.0
_FETCH_INTERVAL_S = 0.005


class Sample(NamedTuple):
    acknowledgements: float  # per second
    fetch_p50_ms: float
    fetch_p99_ms: float


def fetch_repeatedly(
    address: tuple[str, int], is_over: Synchronized[int], results: multiprocessing.Queue[Any]
) -> None:
    """Put the latencies in milliseconds into `results`, until `is_over`."""
    client = BlockingClient(address)
    frame = request_frame(ApiKey.FETCH, FETCH_VERSION, fetch_request({(READ_TOPIC, 0): 0}))
    latencies: list[float] = []
    while not is_over.value:
        began = time.perf_counter()
        client.exchange(frame)
        latencies.append((time.perf_counter() - began) * 1000)
        time.sleep(_FETCH_INTERVAL_S)  # the pace of the load
    client.close()
    results.put(latencies)


def run(broker: Broker, partitions: int, connections: int, seconds: float) -> Sample:
    address = ("127.0.0.1", broker.port)
    is_over: Any = multiprocessing.Value("i", 0)
    results: multiprocessing.Queue[Any] = multiprocessing.Queue()
    fetcher = multiprocessing.Process(target=fetch_repeatedly, args=(address, is_over, results))
    fetcher.start()
    try:
        # The warm-up opens files.
        for duration in (_WARM_UP_S, seconds):
            done = raw_produce(
                broker,
                TOPIC,
                connections=connections,
                batch=one_batch(records=1, record_bytes=200),
                records=1,
                partitions=partitions,
                seconds=duration,
            )
    finally:
        is_over.value = 1
    latencies = sorted(results.get(timeout=30))
    fetcher.join()
    return Sample(
        done.records / done.seconds,
        latencies[len(latencies) // 2],
        latencies[len(latencies) * 99 // 100],
    )


async def prepare(broker: Broker, partitions: int, configs: dict[str, str]) -> None:
    client = await RawClient.connect(("127.0.0.1", broker.port))
    await create_topic(client, READ_TOPIC)
    await create_topic(client, TOPIC, partitions, **configs)
    while True:
        with contextlib.suppress(AssertionError):
            await append(client, READ_TOPIC, batch(bytes(1000)))
            await append(client, TOPIC, batch(b"first"), partition=partitions - 1)
            break
        await pause(0.2)
    await client.close()


def show(partitions: int, name: str, samples: list[Sample]) -> None:
    rate, p50, p99 = (statistics.median(column) for column in zip(*samples, strict=True))
    rates = sorted(sample.acknowledgements for sample in samples)
    print(
        f"| {partitions} | {name} | {rate:,.0f} ({rates[0]:,.0f}-{rates[-1]:,.0f}) "
        f"| {p50:.2f} | {p99:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 50, 500])
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("wirebroker", "apache"), help="measure only this broker")
    options = parser.parse_args()
    print("| dirty partitions | broker | acknowledgements/s | fetch p50 ms | fetch p99 ms |")
    print("|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(prefix="group-commit-", dir=Path.cwd()) as directory,
        contextlib.ExitStack() as started,
    ):
        durable = {"wirebroker.durability": "fsync"}
        brokers: dict[str, tuple[Broker, dict[str, str]]] = {
            "wirebroker": (Wirebroker(Path(directory, "wirebroker"), durable), {}),
            "apache": (apache_kafka(Path(directory, "apache"), {}), {"flush_messages": "1"}),
        }
        for name in list(brokers):
            if options.only in {None, name}:
                brokers[name][0].start()
                started.callback(brokers[name][0].kill9)
            else:
                del brokers[name]
        for broker, configs in brokers.values():
            asyncio.run(prepare(broker, max(options.partitions), configs))
        for partitions in options.partitions:
            samples: dict[str, list[Sample]] = {name: [] for name in brokers}
            for _ in range(options.rounds):
                for name, (broker, _) in brokers.items():
                    sample = run(broker, partitions, options.connections, options.seconds)
                    samples[name].append(sample)
            for name, broker_samples in samples.items():
                show(partitions, name, broker_samples)


if __name__ == "__main__":
    main()
