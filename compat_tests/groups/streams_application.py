"""An application of Kafka Streams: its instances, its input, and the check of its results."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.groups import streams_programs
from compat_tests.support import topics
from compat_tests.support.raw_requests import Requests
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 3
PATIENCE_S = 180.0
SETTINGS = {
    "group.streams.num.standby.replicas": "1",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
}
OUTPUTS = ("words", "hours", "lengths", "named")


class Application:
    """The instances of an application, and what they have written."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, *, replicas: int = 1) -> None:
        for name in ("lines", "names", *OUTPUTS):
            topics.create(bootstrap, f"{prefix}-{name}", partitions=PARTITIONS, replicas=replicas)
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._folder = folder
        self._replicas = replicas
        self._number = 0
        self.instances: list[subprocess.Popen[bytes]] = []
        self.written: dict[str, dict[str, list[Any]]] = {
            name: defaultdict(list) for name in OUTPUTS
        }
        self._reader: Consumer = confluent.make_consumer(
            bootstrap, {"isolation.level": "read_committed", "log_level": 2}
        )
        self._reader.assign(
            [
                TopicPartition(f"{prefix}-{name}", partition, 0)
                for name in OUTPUTS
                for partition in range(PARTITIONS)
            ]
        )

    def start(self, protocol: str = "streams") -> subprocess.Popen[bytes]:
        """Start an instance.

        Args:
            protocol: "streams" or "classic"; the latter assigns tasks in the clients.
        """
        self._number += 1
        folder, port = self._folder / f"state{self._number}", 7_000 + self._number
        arguments = [self._bootstrap, self._prefix, self._prefix, str(folder), str(port)]
        arguments += [protocol, str(self._replicas)]
        with self.log(self._number).open("ab") as log:
            instance = subprocess.Popen(
                [*streams_programs.application_command(), *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.instances.append(instance)
        return instance

    def log(self, number: int) -> Path:
        return self._folder / f"instance{number}.log"

    def kill(self, instance: subprocess.Popen[bytes]) -> None:
        instance.kill()
        instance.wait(WAIT_S)
        if instance.stdin:
            instance.stdin.close()
        self.instances.remove(instance)

    def stop(self, instance: subprocess.Popen[bytes]) -> None:
        """Suspend an instance; its connections stay open."""
        instance.send_signal(signal.SIGSTOP)

    def resume(self, instance: subprocess.Popen[bytes]) -> None:
        instance.send_signal(signal.SIGCONT)

    def end(self, *instances: subprocess.Popen[bytes]) -> None:
        """Let instances leave the group and end."""
        for instance in instances:
            assert instance.stdin
            instance.stdin.close()
        for instance in instances:
            instance.wait(PATIENCE_S)
            self.instances.remove(instance)

    def hosts(self, instance: subprocess.Popen[bytes], number: int) -> dict[str, tuple[int, int]]:
        """Return the partitions of active and standby tasks of each host, as an instance knows."""
        assert instance.stdin
        known = self.log(number).read_text().count("\nhosts ")
        instance.stdin.write(b"hosts\n")
        instance.stdin.flush()
        eventually(lambda: self.log(number).read_text().count("\nhosts ") > known, timeout_s=WAIT_S)
        line = self.log(number).read_text().rpartition("\nhosts ")[2].splitlines()[0]
        pairs = (entry.split("=") for entry in line.split())
        return {
            host: (int(counts.split("+")[0]), int(counts.split("+")[1])) for host, counts in pairs
        }

    def wait_for(self, count: int) -> None:
        """Read until each line has been processed by every part of the application."""
        deadline = time.monotonic() + PATIENCE_S
        while self._done() < count:
            assert all(instance.poll() is None for instance in self.instances), "one has ended"
            assert time.monotonic() < deadline, f"{self._done()} of {count} lines are done"
            if self.read():
                deadline = time.monotonic() + PATIENCE_S

    def _done(self) -> int:
        """Return how many lines all outputs contain; each line has two words."""
        counts = {name: sum(map(len, keys.values())) for name, keys in self.written.items()}
        return min(counts["words"] // 2, counts["hours"], counts["lengths"], counts["named"])

    def read(self) -> int:
        messages = self._reader.consume(500, 0.2)
        for message in messages:
            assert message.error() is None, message.error()
            name = (message.topic() or "").rpartition("-")[2]
            key, value = (message.key() or b"").decode(), message.value() or b""
            shown: Any = value.decode() if name == "named" else int.from_bytes(value)
            self.written[name][key].append(shown)
        return len(messages)

    def close(self) -> None:
        for instance in tuple(self.instances):
            self.kill(instance)
        self._reader.close()


class Input:
    """The lines of customers, and the names that they are joined with."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.lines: dict[str, list[str]] = defaultdict(list)
        self._prefix = prefix
        self._count = 0
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self.customers = [f"customer{number}" for number in range(30)]
        for customer in self.customers:
            self._producer.produce(f"{prefix}-names", f"name of {customer}", customer)
        assert self._producer.flush(WAIT_S) == 0

    def write(self, count: int) -> int:
        """Write more lines; return their number so far."""
        for _ in range(count):
            self._count += 1
            customer = self.customers[self._count % len(self.customers)]
            line = f"word{self._count % 17} word{self._count % 5}"
            self.lines[customer].append(line)
            self._producer.produce(f"{self._prefix}-lines", line, customer)
        assert self._producer.flush(WAIT_S) == 0
        return self._count


def described(bootstrap: str, group_id: str) -> Any:
    """Return the description by the coordinator, one of these brokers; None if none responds."""
    for address in bootstrap.split(","):
        host, _, port = address.rpartition(":")
        with (
            contextlib.suppress(OSError),
            contextlib.closing(Requests((host, int(port)))) as asking,
        ):
            request = {"group_ids": [group_id]}
            (group,) = asking.try_ask(ApiKey.STREAMS_GROUP_DESCRIBE, 0, request).groups
            if group.error_code == ErrorCode.NONE:
                return group
    return None


def tasks_of(group: Any, kind: str) -> list[tuple[str, int]]:
    return sorted(
        (entry.subtopology_id, partition)
        for member in group.members
        for entry in getattr(member.assignment, kind)
        for partition in entry.partitions
    )


def is_stable(group: Any, members: int) -> bool:
    return group is not None and group.group_state == "Stable" and len(group.members) == members


def check_results(written: dict[str, dict[str, list[Any]]], given: Input) -> None:
    """Check that each intermediate result was written once, in order."""
    words = Counter(
        word for lines in given.lines.values() for line in lines for word in line.split()
    )
    for word, count in words.items():
        assert written["words"][word] == list(range(1, count + 1)), word
    assert written["words"].keys() == words.keys()
    for customer, lines in given.lines.items():
        sums = [sum(map(len, lines[: end + 1])) for end in range(len(lines))]
        assert written["lengths"][customer] == sums
        assert written["named"][customer] == [f"name of {customer}: {line}" for line in lines]
        windows = [
            counts for key, counts in written["hours"].items() if key.startswith(f"{customer}@")
        ]
        assert sum(map(len, windows)) == len(lines)
        assert all(counts == list(range(1, len(counts) + 1)) for counts in windows)
