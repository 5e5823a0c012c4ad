"""Measure the lateness and the cost per record of the delivery service.

    python -m benchmarks.scenarios.delivery_lateness --rate 1000 --seconds 20 [--broker apache]
    python -m benchmarks.scenarios.delivery_lateness --rate 10000 --seconds 10 --ahead 60
    python -m benchmarks.scenarios.delivery_lateness --rate 100 --seconds 60 --burst 1000000

Records are sent at this rate; their due times are evenly spread from 2 to 12 s later. With
`--ahead`, they are sent as fast as possible and are due at this rate, from this number of seconds
after the start.

`--burst` adds this number of records for another topic, due in the second in which the first of the
measured records is due. `burst_s` is the time that their delivery took.

`written` is a record's timestamp, which is the time of delivery, minus its due time; `seen` is
when a consumer with read_committed received it: the commit and a fetch later.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.measurement.machine import cpu_seconds
from tests.support.brokers.brokers import make_broker
from tests.support.delivery.delivery_process import DeliveryProcess
from wirebroker.base.clock import SystemClock

_PARTITIONS = 4
_FIRST_MS = 2_000
_WINDOW_MS = 10_000
# Time for the service to store a burst before it is due.
_STORED_PER_S = 3_000
_LEAST_BURST_S = 10
_QUEUED = 50_000
_PATIENCE_S = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--ahead", type=int, default=0)
    parser.add_argument("--burst", type=int, default=0)
    parser.add_argument("--broker", default="wirebroker")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = make_broker(options.broker, Path(folder) / "broker")
        with broker, DeliveryProcess(broker.bootstrap, Path(folder) / "instance") as service:
            service.wait_until_ready()
            run = LatenessRun(broker.bootstrap, options)
            before = service.cpu_s(), cpu_seconds(broker.process_id)
            run.run()
            report = run.report()
            for name, used, at_start in zip(
                ("service", "broker"),
                (service.cpu_s(), cpu_seconds(broker.process_id)),
                before,
                strict=True,
            ):
                report[f"{name}_cpu_us_per_record"] = round((used - at_start) / run.count * 1e6, 1)
            report["service_memory_mib"] = service.memory_mib()
            report["service_most_memory_mib"] = service.most_memory_mib()
            print(json.dumps(report))


class LatenessRun:
    """A producer of scheduled records and a consumer of delivered ones."""

    def __init__(self, bootstrap: str, options: argparse.Namespace) -> None:
        self._options = options
        self.count = options.rate * options.seconds
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("orders", _PARTITIONS, 1)])["orders"].result(30)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "lateness",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 500,
            }
        )
        self._consumer.subscribe(["orders"])
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._clock = SystemClock()
        self._burst = _Burst(bootstrap, options.burst, self._clock) if options.burst else None
        if self._burst is not None:
            self._burst.send()
            self._burst.wait_until_due(_FIRST_MS)
        self._began_ms = self._clock.now_ms()
        self._sent = 0
        self._written: list[int] = []
        self._seen: list[int] = []

    def run(self) -> None:
        while len(self._written) < self.count:
            wanted = (self._clock.now_ms() - self._began_ms) * self._options.rate // 1000
            if self._options.ahead:
                wanted = self._sent + 1_000
            self._send(min(self.count, wanted))
            for message in self._consumer.consume(5_000, 0.002):
                if message.error() is None:
                    due_ms = int((message.value() or b"")[:13])
                    self._written.append(message.timestamp()[1] - due_ms)
                    self._seen.append(self._clock.now_ms() - due_ms)
        self._consumer.close()
        if self._burst is not None:
            self._burst.wait_until_delivered()

    def _send(self, wanted: int) -> None:
        while self._sent < wanted:
            due_ms = self._due_ms()
            value = b"%d" % due_ms + b"x" * 87
            headers: Any = {"deliver-to": "orders", "deliver-at": str(due_ms)}
            self._producer.produce("deliver", value, b"%d" % self._sent, headers=headers)
            self._sent += 1
        self._producer.poll(0)

    def _due_ms(self) -> int:
        if self._options.ahead:
            first_ms = self._began_ms + 1000 * self._options.ahead
            return int(first_ms + self._sent * 1000 // self._options.rate)
        return self._clock.now_ms() + _FIRST_MS + self._sent * 7 % _WINDOW_MS

    def report(self) -> dict[str, Any]:
        return {
            "broker": self._options.broker,
            "records": self.count,
            "rate": self._options.rate,
            "cores": os.cpu_count(),
            "written_late_ms": percentiles(self._written),
            "seen_late_ms": percentiles(self._seen),
            "early": sum(late < 0 for late in self._written),
            **({} if self._burst is None else self._burst.report()),
        }


class _Burst:
    """Records for one topic that are due in the same second."""

    def __init__(self, bootstrap: str, count: int, clock: SystemClock) -> None:
        self._count = count
        self._clock = clock
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("burst", _PARTITIONS, 1)])["burst"].result(30)
        settings = {"bootstrap.servers": bootstrap, "group.id": "burst"}
        self._consumer = Consumer(
            {**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        )
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
        self._due_ms = clock.now_ms() + 1_000 * (_LEAST_BURST_S + count // _STORED_PER_S)
        self._late_ms: list[int] = []

    def send(self) -> None:
        for number in range(self._count):
            due_ms = self._due_ms + number % 1_000
            headers: Any = {"deliver-to": "burst", "deliver-at": str(due_ms)}
            self._producer.produce("deliver", b"%d" % due_ms, b"%d" % number, headers=headers)
            if len(self._producer) > _QUEUED:
                self._producer.poll(0.1)
        assert self._producer.flush(_PATIENCE_S) == 0

    def wait_until_due(self, ahead_ms: int) -> None:
        remaining_ms = self._due_ms - ahead_ms - self._clock.now_ms()
        assert remaining_ms > 0, "sending took too long"
        threading.Event().wait(remaining_ms / 1000)

    def wait_until_delivered(self) -> None:
        """Read all records."""
        self._consumer.subscribe(["burst"])
        while len(self._late_ms) < self._count:
            for message in self._consumer.consume(10_000, 0.5):
                if message.error() is None:
                    due_ms = int(message.value() or b"0")
                    self._late_ms.append(message.timestamp()[1] - due_ms)
        self._consumer.close()

    def report(self) -> dict[str, Any]:
        early = sum(late < 0 for late in self._late_ms)
        return {
            "burst": len(self._late_ms),
            "burst_s": round(max(self._late_ms) / 1000, 1),
            "burst_early": early,
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
