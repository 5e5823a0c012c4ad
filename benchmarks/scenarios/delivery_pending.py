"""Measure the delivery service with many pending records: memory, disk and start time.

    python -m benchmarks.scenarios.delivery_pending --records 1000000 [--broker apache]

The records have a value of 100 bytes and an id, and are due tomorrow. The service stores them, is
started again with its index, and once more without it.
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

from tests.support.brokers.brokers import make_broker
from tests.support.delivery.delivery_process import DeliveryProcess
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.delivery.service.index_directory import INDEX_FILES

_PARTITIONS: Final = 8
_PATIENCE_S: Final = 3_600.0
_QUEUED: Final = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--broker", default="wirebroker")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        make_broker(options.broker, Path(folder) / "broker") as broker,
    ):
        run = PendingRun(broker.bootstrap, Path(folder) / "instance")
        report = {"broker": options.broker, "records": options.records}
        print(json.dumps(report | run.report(options.records)))


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
        index_bytes = sum(file.stat().st_size for file in self._directory.iterdir())
        report["index_bytes_per_record"] = round(index_bytes / count)
        report["start_s"] = self._start()
        self._service.stop()
        # Not the instance's id: its group would wait for the former member.
        for file in self._directory.glob(INDEX_FILES):
            file.unlink()
        report["rebuild_s"] = self._start()
        report["rebuild_cpu_us_per_record"] = round(self._service.cpu_s() / count * 1e6, 1)
        report["memory_after_rebuild_mib"] = self._service.memory_mib()
        self._service.stop()
        return report

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
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics") as response:
                page = response.read().decode()
        except urllib.error.URLError:  # it starts
            return 0.0
        suffix = "_total" if name == "received" else ""
        match = re.search(rf"^wirebroker_delivery_{name}{suffix} (\S+)$", page, re.MULTILINE)
        assert match is not None, page
        return float(match[1])

    def _send(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20})
        value = b"x" * 100
        for number in range(count):
            headers: Any = {
                "deliver-to": "orders",
                "deliver-after": "1d",
                "deliver-id": f"order-{number}",
            }
            producer.produce("deliver", value, b"%d" % number, headers=headers)
            if len(producer) > _QUEUED:
                producer.poll(0.1)
        assert producer.flush(_PATIENCE_S) == 0


if __name__ == "__main__":
    main()
