"""Measure how late the delivery service is, and its CPU time per record.

    python -m benchmarks.scenarios.delivery_lateness --rate 1000 --seconds 20 [--broker apache]

Records are due 2 to 12 s after they are sent, evenly. Lateness is a record's timestamp, which is
the time of delivery, minus its due time. The consumer's view adds the commit and a fetch.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers.brokers import make_broker
from tests.support.delivery.delivery_process import DeliveryProcess
from wirebroker.base.clock import SystemClock

_PARTITIONS = 4
_FIRST_MS = 2_000
_WINDOW_MS = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--broker", default="wirebroker")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = make_broker(options.broker, Path(folder) / "broker")
        with broker, DeliveryProcess(broker.bootstrap, Path(folder) / "instance") as service:
            service.wait_until_ready()
            print(json.dumps(measure(broker.bootstrap, service, options)))


def measure(
    bootstrap: str, service: DeliveryProcess, options: argparse.Namespace
) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", _PARTITIONS, 1)])["orders"].result(30)
    count = options.rate * options.seconds
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "lateness",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.subscribe(["orders"])
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    clock = SystemClock()
    began_ms, cpu_s = clock.now_ms(), service.cpu_s()
    written: list[int] = []
    seen: list[int] = []
    sent = 0
    while len(written) < count:
        wanted = min(count, (clock.now_ms() - began_ms) * options.rate // 1000)
        while sent < wanted:
            due_ms = clock.now_ms() + _FIRST_MS + sent * 7 % _WINDOW_MS
            value = b"%d" % due_ms + b"x" * 87
            headers: Any = {"deliver-to": "orders", "deliver-at": str(due_ms)}
            producer.produce("deliver", value, b"%d" % sent, headers=headers)
            sent += 1
        producer.poll(0)
        for message in consumer.consume(5_000, 0.01):
            if message.error() is None:
                due_ms = int((message.value() or b"")[:13])
                written.append(message.timestamp()[1] - due_ms)
                seen.append(clock.now_ms() - due_ms)
    consumer.close()
    return {
        "broker": options.broker,
        "records": count,
        "rate": options.rate,
        "cores": os.cpu_count(),
        "written_late_ms": percentiles(written),
        "seen_late_ms": percentiles(seen),
        "early": sum(late < 0 for late in written),
        "service_cpu_us_per_record": round((service.cpu_s() - cpu_s) / count * 1e6, 1),
        "service_memory_mib": service.memory_mib(),
    }


def percentiles(values: list[int]) -> dict[str, int]:
    ordered = sorted(values)
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[len(ordered) * 99 // 100],
        "max": ordered[-1],
    }


if __name__ == "__main__":
    main()
