"""Measure the delivery service with many pending records: memory, disk and start time.

    python -m benchmarks.scenarios.delivery_pending --records 1000000 [--broker apache]
    python -m benchmarks.scenarios.delivery_pending --records 10000000 --direct

The records have a value of 100 bytes and an id, and are due tomorrow. The service stores them,
restarts with its index, and restarts once more without it. With `--direct` the entries are written
to the pending topic while the service is stopped, which is quicker; it then builds its index.

At the end, records are delivered at 1,000 a second while all others wait.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers.brokers import make_broker
from tests.support.delivery.delivery_process import DeliveryProcess
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.client.records.partitioning import partition_for
from wirebroker.delivery.model.entry import PendingEntry, encode_entry
from wirebroker.delivery.service.index_directory import INDEX_FILES
from wirebroker.delivery.service.settings import pending_topic_of

_PARTITIONS: Final = 8
_PATIENCE_S: Final = 3_600.0
_QUEUED: Final = 50_000
_VALUE: Final = b"x" * 100
_GROUP: Final = "wirebroker-delivery"
_DAY_MS: Final = 86_400_000
# Records that are delivered at the end, and their rate.
_DELIVERED: Final = 20_000
_DELIVERED_PER_S: Final = 1_000
_WITHIN_MS: Final = (25, 50, 100, 250, 500)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--broker", default="wirebroker")
    parser.add_argument("--direct", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        make_broker(options.broker, Path(folder) / "broker") as broker,
    ):
        run = PendingRun(broker.bootstrap, Path(folder) / "instance")
        report = {"broker": options.broker, "records": options.records}
        measure = run.direct_report if options.direct else run.report
        print(json.dumps(report | measure(options.records) | run.deliver()))


class PendingRun:
    """An instance that is started three times."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._port = free_port()
        self._clock = SystemClock()
        settings = {
            "wirebroker.delivery.metrics.port": self._port,
            "wirebroker.delivery.partitions": _PARTITIONS,
        }
        self._service = DeliveryProcess(bootstrap, directory, settings)

    def report(self, count: int) -> dict[str, Any]:
        began = self._clock.monotonic()
        self._start()
        self._send(count)
        eventually(lambda: self._metric("received") >= count, timeout_s=_PATIENCE_S, poll_s=0.5)
        report: dict[str, Any] = {"stored_per_s": round(count / self._since(began))}
        report["memory_mib"] = self._service.memory_mib()
        self._service.stop()
        report["index_bytes_per_record"] = self._index_bytes(count)
        report["start_s"] = self._start()
        self._service.stop()
        # Not the instance's id: its group would wait for the former member.
        for file in self._directory.glob(INDEX_FILES):
            file.unlink()
        return report | self._rebuild(count)

    def direct_report(self, count: int) -> dict[str, Any]:
        """Write the entries while the service is stopped."""
        self._start()
        self._service.stop()
        self._write_entries(count)
        report = self._rebuild(count)
        self._service.stop()
        report["index_bytes_per_record"] = self._index_bytes(count)
        report["start_s"] = self._start()
        report["start_cpu_s"] = round(self._service.cpu_s(), 1)
        report["memory_after_start_mib"] = self._service.memory_mib()
        return report

    def deliver(self) -> dict[str, Any]:
        """Deliver records at 1,000 a second; return their lateness and the memory."""
        self._send_due()
        eventually(
            lambda: self._metric("delivered") >= _DELIVERED, timeout_s=_PATIENCE_S, poll_s=0.5
        )
        shares = {f"within_{ms}_ms": self._share_within(ms / 1000) for ms in _WITHIN_MS}
        report = shares | {"memory_while_delivering_mib": self._service.memory_mib()}
        report["most_memory_mib"] = self._service.most_memory_mib()
        self._service.stop()
        return report

    def _share_within(self, seconds: float) -> float:
        return round(self._bucket(str(seconds)) / self._bucket("+Inf"), 4)

    def _rebuild(self, count: int) -> dict[str, Any]:
        report: dict[str, Any] = {"rebuild_s": self._start()}
        report["rebuild_cpu_us_per_record"] = round(self._service.cpu_s() / count * 1e6, 1)
        report["memory_after_rebuild_mib"] = self._service.memory_mib()
        report["most_memory_in_rebuild_mib"] = self._service.most_memory_mib()
        return report

    def _index_bytes(self, count: int) -> int:
        return round(sum(file.stat().st_size for file in self._directory.iterdir()) / count)

    def _start(self) -> float:
        """Start the service; return the seconds until it delivers from all partitions."""
        began = self._clock.monotonic()
        self._service.start()
        eventually(
            lambda: self._metric("partitions") == _PARTITIONS, timeout_s=_PATIENCE_S, poll_s=0.1
        )
        return self._since(began)

    def _since(self, began: float) -> float:
        return round(self._clock.monotonic() - began, 1)

    def _metric(self, name: str) -> float:
        suffix = "_total" if name in {"received", "delivered"} else ""
        return self._value(rf"wirebroker_delivery_{name}{suffix}")

    def _bucket(self, bound: str) -> float:
        name = "wirebroker_delivery_lateness_seconds_bucket"
        return self._value(rf'{name}\{{le="{re.escape(bound)}"\}}')

    def _value(self, pattern: str) -> float:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics") as response:
                page = response.read().decode()
        except urllib.error.URLError:  # it starts
            return 0.0
        match = re.search(rf"^{pattern} (\S+)$", page, re.MULTILINE)
        assert match is not None, page
        return float(match[1])

    def _write_entries(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 50})
        now_ms = self._clock.now_ms()
        headers = (("deliver-original-timestamp", b"%d" % now_ms),)
        for number in range(count):
            identity = f"order-{number}"
            entry = PendingEntry(
                name=f"deliver/0/{number}/{now_ms}",
                due_ms=now_ms + _DAY_MS + number,
                target="orders",
                partition=None,
                delivery_id=identity,
                expires_ms=None,
                attempt=0,
                dead_letters="deliver.dead-letters",
                key=b"%d" % number,
                value=_VALUE,
                headers=headers,
            )
            producer.produce(
                pending_topic_of(_GROUP),
                encode_entry(entry),
                entry.name.encode(),
                partition=partition_for(identity.encode(), _PARTITIONS),
            )
            if len(producer) > _QUEUED:
                producer.poll(0.1)
        assert producer.flush(_PATIENCE_S) == 0

    def _send_due(self) -> None:
        """Send records that are due 2 s later, at 1,000 a second."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.create_topics([NewTopic("orders", 4, 1)])["orders"].result(60)
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5})
        began = self._clock.monotonic()
        sent = 0
        while sent < _DELIVERED:
            wanted = min(_DELIVERED, int((self._clock.monotonic() - began) * _DELIVERED_PER_S))
            for number in range(sent, wanted):
                headers: Any = {"deliver-to": "orders", "deliver-after": "2s"}
                producer.produce("deliver", _VALUE, b"%d" % number, headers=headers)
            sent = wanted
            producer.poll(0.005)
        assert producer.flush(_PATIENCE_S) == 0

    def _send(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20})
        for number in range(count):
            headers: Any = {
                "deliver-to": "orders",
                "deliver-after": "1d",
                "deliver-id": f"order-{number}",
            }
            producer.produce("deliver", _VALUE, b"%d" % number, headers=headers)
            if len(producer) > _QUEUED:
                producer.poll(0.1)
        assert producer.flush(_PATIENCE_S) == 0


if __name__ == "__main__":
    main()
