"""wirebroker and Apache Kafka 4.3.1 on one machine in one run: start, memory, rates.

    python -m benchmarks.side_by_side [--rounds 3] [--records 500000]

Both brokers take every step in turn (A B A B), on a fresh data directory each; the table has
medians. Load of other processes spoils rates more than their ratio: look at the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.generators import java_producer
from benchmarks.machine import cpu_seconds, describe, resident_mb
from compat_tests.brokers import ApacheKafka, Broker, Wirebroker

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_CONNECTIONS = 1000
# A Metadata request for all topics, v1, with its length.
METADATA_REQUEST = struct.pack(">ihhihi", 14, 3, 1, 7, -1, -1)


class Figures(NamedTuple):
    """One broker's figures in one round."""

    start_ms: float  # from exec to the first Metadata answer
    rss_mb: float
    rss_idle_mb: float  # with IDLE_CONNECTIONS open
    librdkafka_per_s: float  # 200-byte records, acks=all, default batching
    librdkafka_cpu_us: float  # the broker's, per record
    java_per_s: float  # ProducerPerformance, 200-byte records, idempotent as by default
    java_cpu_us: float


def main() -> None:
    """Measure, print the table, and write it as JSON beside this file if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--json", type=Path, help="write the figures of every round to this file")
    options = parser.parse_args()
    rounds: dict[str, list[Figures]] = {"wirebroker": [], "apache": []}
    for number in range(options.rounds):
        for name, kind in (("wirebroker", Wirebroker), ("apache", ApacheKafka)):
            print(f"round {number + 1}: {name} …", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix="side-by-side-") as directory:
                rounds[name].append(measure(kind(Path(directory)), options.records))
    print_table(rounds)
    if options.json:
        content = {name: [each._asdict() for each in runs] for name, runs in rounds.items()}
        options.json.write_text(json.dumps(content, indent=1) + "\n")


def measure(broker: Broker, records: int) -> Figures:
    """Start a broker, take its figures, stop it."""
    broker.start()  # formats the directory, and brings the files into the page cache
    broker.stop()
    began = time.monotonic()
    broker.start()
    ask_metadata(broker.port)
    start_ms = (time.monotonic() - began) * 1000
    try:
        rss = resident_mb(broker.process_id)
        sockets = [
            socket.create_connection(("127.0.0.1", broker.port)) for _ in range(IDLE_CONNECTIONS)
        ]
        ask_metadata(broker.port)
        rss_idle = resident_mb(broker.process_id)
        for sock in sockets:
            sock.close()
        rdk_rate, rdk_cpu = timed(broker, records, produce_by_librdkafka)
        java_rate, java_cpu = timed(broker, records, produce_by_java)
    finally:
        broker.stop()
    return Figures(start_ms, rss, rss_idle, rdk_rate, rdk_cpu, java_rate, java_cpu)


def ask_metadata(port: int) -> None:
    """Wait for one answer to a Metadata request."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
                sock.sendall(METADATA_REQUEST)
                if len(sock.recv(4)) == 4:
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise


def timed(
    broker: Broker, records: int, produce: Callable[[Broker, str, int], float]
) -> tuple[float, float]:
    """Return (records a second, broker's CPU in us a record) of the second of two goes."""
    topic = f"speed-{produce.__name__}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    produce(broker, topic, records // 5)
    cpu = cpu_seconds(broker.process_id)
    rate = produce(broker, topic, records)
    return rate, (cpu_seconds(broker.process_id) - cpu) / records * 1e6


def produce_by_librdkafka(broker: Broker, topic: str, records: int) -> float:
    """Produce with confluent-kafka; return records a second."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 5},
    )
    value = os.urandom(200)
    began = time.monotonic()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(120) == 0
    return records / (time.monotonic() - began)


def produce_by_java(broker: Broker, topic: str, records: int) -> float:
    """Produce with Kafka's ProducerPerformance; return records a second."""
    sample = java_producer(broker, topic, records=records, record_bytes=200, properties={})
    return sample.records / sample.seconds


def print_table(rounds: dict[str, list[Figures]]) -> None:
    """Print medians and the ratio wirebroker / Apache Kafka."""
    print(describe())
    print(f"{'':22}{'wirebroker':>14}{'Apache Kafka':>14}{'ratio':>8}")
    for field in Figures._fields:
        ours, theirs = (
            statistics.median(getattr(each, field) for each in rounds[name])
            for name in ("wirebroker", "apache")
        )
        print(f"{field:22}{ours:14,.1f}{theirs:14,.1f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
