"""`wirebroker serve --workers` as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers.brokers import Wirebroker
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "1",
}
PATIENCE_S = 60


class Workers(Wirebroker):
    def __init__(self, directory: Path, count: int) -> None:
        super().__init__(directory)
        self.settings = dict(SETTINGS)
        self.count = count

    def _command(self) -> list[str]:
        return [*super()._command(), "--workers", str(self.count)]

    def processes(self) -> dict[int, int]:
        output = subprocess.run(
            ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(self.process_id)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        return {int(node): int(pid) for pid, node in re.findall(r"(\d+) .* node-(\d+)\n", output)}


def serve(data: Path, *arguments: str) -> str:
    """Return the error output of a failing start."""
    command = [sys.executable, "-m", "wirebroker", "serve", "--data-dir", str(data), *arguments]
    command += ["--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    return done.stderr.splitlines()[-1]


def brokers_of(admin: AdminClient) -> set[int]:
    return set(admin.list_topics(timeout=10).brokers)


def in_sync(admin: AdminClient, topic: str) -> set[int]:
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
    return {broker for partition in partitions for broker in partition.isrs}


@pytest.mark.skipif(sys.platform != "linux", reason="needs ps to find child processes")
def test_worker_cluster_survives_a_killed_worker_and_stops_together(tmp_path):
    workers = Workers(tmp_path, 2)
    workers.start()
    try:
        admin = AdminClient({"bootstrap.servers": workers.bootstrap})
        assert brokers_of(admin) == {1, 2}
        created = admin.create_topics([NewTopic("t", 1, replica_assignment=[[2, 1]])])
        created["t"].result(PATIENCE_S)
        eventually(lambda: in_sync(admin, "t") == {1, 2}, timeout_s=PATIENCE_S)
        producer = Producer({"bootstrap.servers": workers.bootstrap, "enable.idempotence": True})
        producer.produce("t", "before")
        assert producer.flush(PATIENCE_S) == 0

        before = workers.processes()
        os.kill(before[2], signal.SIGKILL)
        producer.produce("t", "after")
        assert producer.flush(PATIENCE_S) == 0
        eventually(lambda: in_sync(admin, "t") == {1, 2}, timeout_s=PATIENCE_S)
        after = workers.processes()
        assert after[1] == before[1]
        assert after[2] != before[2]

        consumer = Consumer(
            {
                "bootstrap.servers": workers.bootstrap,
                "group.id": "g",
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition("t", 0, 0)])
        values = [message.value() for message in consumer.consume(2, timeout=PATIENCE_S)]
        # Needs the coordinator, so __consumer_offsets exists from here on.
        consumer.committed([TopicPartition("t", 0)], timeout=PATIENCE_S)
        consumer.close()
        assert values == [b"before", b"after"]
        workers.stop()
    finally:
        workers.kill9()
    log = workers.log.read_text()
    assert log.count("worker 2 (node 2) was killed by SIGKILL: restarting it in 0.5 s") == 1
    assert "replicas on this one machine do not survive its loss" in log
    assert "INFO [worker 2] wirebroker: stopped\n" in log
    assert re.search(r"^  worker 2 on 127.0.0.1:\d+ \(node 2\)$", log, re.MULTILINE)
    assert re.search(r"^  controller CONTROLLER: 127.0.0.1:\d+$", log, re.MULTILINE)
    data = workers.data_dir
    assert f"  data: {data}/worker1, {data}/worker2\n" in log
    # All have stopped cleanly.
    assert all((data / name / ".kafka_cleanshutdown").exists() for name in ("worker1", "worker2"))

    assert serve(data, "--workers", "1") == (
        f"wirebroker: {data} holds the data of 2 workers; those beyond 1 have replicas (t-0, "
        "__consumer_offsets-0): start it with --workers 2, or move them first "
        "(kafka-reassign-partitions.sh; docs/workers.md)"
    )
    assert serve(data) == (
        f"wirebroker: {data} holds the data of 2 workers: start it with --workers 2"
    )


def test_failed_worker_start_is_reported_and_stops_all_workers(tmp_path):
    (tmp_path / "worker1").write_text("no directory")
    error = serve(tmp_path, "--workers", "2")
    assert error == (
        f"wirebroker: worker 1: cannot use the data directory {tmp_path}/worker1: it is not "
        "a directory: choose another (--data-dir DIR)"
    )
