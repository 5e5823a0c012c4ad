"""Start and stop of a broker with many partitions, and its memory.

    python -m benchmarks.scenarios.many_partitions [--partitions 10000] [--dir DIR]

Steps, each printed with its seconds, memory and open files: create topics; append three batches to
each partition; clean stop; start; append again and kill -9; start; clean stop. A start ends when
Metadata lists all topics, or when the last partition has returned its offsets. `--cold` drops the
page cache before each start (needs root).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measurement.machine import cpu_seconds, resident_mb
from tests.support.protocol.raw_client import BlockingClient
from tests.support.records.batches import batch
from wirebroker.codecs.api_keys import ApiKey

_PER_TOPIC = 100
_ROUNDS = 3


class _Broker:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.client: BlockingClient | None = None

    def start(self, topic_count: int) -> float:
        port_file = self._directory / "port"
        port_file.unlink(missing_ok=True)
        before = time.perf_counter()
        command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0"]
        command += ["--port-file", str(port_file), "--set", f"log.dirs={self._directory}/data"]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log)
        while not (port_file.exists() and port_file.read_text()):
            assert self._process.poll() is None, "it did not start"
            time.sleep(0.01)  # a starting broker is probed
        self.client = BlockingClient(("127.0.0.1", int(port_file.read_text())))
        answer = self.client.ask(ApiKey.METADATA, 12, {"topics": None})
        assert len(answer.topics) >= topic_count
        return time.perf_counter() - before

    def stop(self, sent: signal.Signals) -> float:
        assert self._process is not None
        assert self.client is not None
        self.client.close()
        before = time.perf_counter()
        self._process.send_signal(sent)
        self._process.wait()
        return time.perf_counter() - before

    def size(self) -> str:
        assert self._process is not None
        number = self._process.pid
        memory, cpu_s = resident_mb(number), cpu_seconds(number)
        files = len(list(Path(f"/proc/{number}/fd").iterdir()))
        return f"{memory:5.0f} MiB resident, {files:5} files, {cpu_s:6.2f} s of CPU so far"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--dir", default=None)
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()
    topics = [f"t{number}" for number in range(arguments.partitions // _PER_TOPIC)]
    with tempfile.TemporaryDirectory(dir=arguments.dir) as directory:
        broker = _Broker(Path(directory))
        _report("start, empty", broker.start(0), broker)
        assert broker.client is not None
        before = time.perf_counter()
        for topic in topics:
            new = {"name": topic, "num_partitions": _PER_TOPIC, "replication_factor": 1}
            broker.client.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [new], "timeout_ms": 60_000})
        _report("topics created", time.perf_counter() - before, broker)
        _report(f"{_ROUNDS} batches each", _produce(broker, topics), broker)
        _report("stop", broker.stop(signal.SIGTERM))
        _drop_caches(enabled=arguments.cold)
        _report("start, clean", broker.start(len(topics)), broker)
        _report("every partition asked", _list_offsets(broker, topics), broker)
        _report("stop, nothing written", broker.stop(signal.SIGTERM))
        broker.start(len(topics))
        _report(f"{_ROUNDS} batches each", _produce(broker, topics), broker)
        _report("kill -9", broker.stop(signal.SIGKILL))
        _drop_caches(enabled=arguments.cold)
        _report("start, after the kill", broker.start(len(topics)), broker)
        _report("every partition asked", _list_offsets(broker, topics), broker)
        _report("stop", broker.stop(signal.SIGTERM))


def _produce(broker: _Broker, topics: list[str]) -> float:
    assert broker.client is not None
    before = time.perf_counter()
    for _ in range(_ROUNDS):
        records = batch(b"x" * 100)
        for topic in topics:
            data = [{"index": index, "records": records} for index in range(_PER_TOPIC)]
            request = {
                "transactional_id": None,
                "acks": -1,
                "timeout_ms": 60_000,
                "topic_data": [{"name": topic, "partition_data": data}],
            }
            answer = broker.client.ask(ApiKey.PRODUCE, 9, request)
            errors = {partition.error_code for partition in answer.responses[0].partition_responses}
            assert errors == {0}, errors
    return time.perf_counter() - before


def _list_offsets(broker: _Broker, topics: list[str]) -> float:
    assert broker.client is not None
    before = time.perf_counter()
    for topic in topics:
        partitions = [{"partition_index": index, "timestamp": -1} for index in range(_PER_TOPIC)]
        request = {"replica_id": -1, "topics": [{"name": topic, "partitions": partitions}]}
        answer = broker.client.ask(ApiKey.LIST_OFFSETS, 1, request)
        ends = {partition.offset for partition in answer.topics[0].partitions}
        assert ends in ({_ROUNDS}, {2 * _ROUNDS}), ends
    return time.perf_counter() - before


def _drop_caches(*, enabled: bool) -> None:
    if enabled:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")


def _report(step: str, seconds: float, broker: _Broker | None = None) -> None:
    print(f"{step:<24} {seconds:7.2f} s   {broker.size() if broker else ''}", flush=True)


if __name__ == "__main__":
    main()
