"""Instances of the delivery service as processes, and the records of their topics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

STOP_TIMEOUT_S = 30.0


class DeliveryProcess:
    """One instance, with its own directory; it can be killed and started again."""

    def __init__(
        self,
        bootstrap: str,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        flags: tuple[str, ...] = (),
    ) -> None:
        self.directory = directory
        self.log = directory.with_suffix(".log")
        own = {"directory": directory, "partitions": 4, "session.timeout.ms": 6_000}
        config = {f"wirebroker.delivery.{name}": value for name, value in own.items()}
        pairs = [f"{name}={value}" for name, value in (config | dict(settings or {})).items()]
        self._command = [
            *(sys.executable, "-m", "wirebroker", "delivery", "run", "--bootstrap", bootstrap),
            *(word for pair in pairs for word in ("--set", pair)),
            *flags,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                # SIGABRT writes the stacks of all threads.
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
            )

    def wait_until_ready(self) -> None:
        """Wait for the ready line; a process that ended fails the test with its log."""

        def is_ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self.text()
            return " reads " in self.text()

        eventually(is_ready, timeout_s=60)

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None

    def stop(self) -> None:
        """End it with SIGTERM; the stacks of one that does not end are in the error."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            self._process.send_signal(signal.SIGABRT)
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None
            raise AssertionError(f"the service did not stop: {self.text()}") from error
        self._process = None

    def cpu_s(self) -> float:
        """Return the CPU seconds that the process has used."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> int:
        """Return the process's resident memory in MiB."""
        return self._memory_mib("VmRSS")

    def most_memory_mib(self) -> int:
        """Return the most resident memory that the process had, in MiB."""
        return self._memory_mib("VmHWM")

    def _memory_mib(self, field: str) -> int:
        assert self._process is not None
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        (kib,) = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
        return int(kib) // 1024

    def wait(self) -> int:
        """Return the exit status of a process that ends by itself."""
        assert self._process is not None
        return self._process.wait(STOP_TIMEOUT_S)


def committed_records(bootstrap: str, topic: str, settings: Mapping[str, Any] = {}) -> list[Any]:
    """Return all committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader-of-tests",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )
    found: list[Any] = []
    try:
        topics = consumer.list_topics(topic, timeout=30).topics[topic]
        from confluent_kafka import TopicPartition

        consumer.assign([TopicPartition(topic, number, 0) for number in topics.partitions])
        unfinished = set(topics.partitions)
        patience = threading.Event()
        while unfinished:
            message = consumer.poll(10)
            assert message is not None or not patience.is_set(), f"{topic} cannot be read"
            if message is None:
                patience.set()
                continue
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            elif error.fatal():
                raise KafkaException(error)
    finally:
        consumer.close()
    return found
