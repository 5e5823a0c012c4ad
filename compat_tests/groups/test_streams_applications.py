"""Kafka Streams with group.protocol=streams (KIP-1071), exactly once, while processes are killed.

Words are counted over a repartition topic, lines by window and by sum, and joined with a table. Two
instances of two threads share the tasks; standby tasks keep copies of the state. The results are
exact, whatever is killed.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.groups import streams_programs
from compat_tests.support import topics
from compat_tests.support.raw_requests import Requests
from tests.support.brokers.brokers import HOST
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import StartBroker
    from tests.support.brokers.brokers import Broker

PARTITIONS = 3
# Lines, 1,000 before each kill.
LINES = 3_000
PATIENCE_S = 120.0
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

    def __init__(self, bootstrap: str, prefix: str, folder: Path) -> None:
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._folder = folder
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

    def start(self) -> subprocess.Popen[bytes]:
        self._number += 1
        folder, port = self._folder / f"state{self._number}", 7_000 + self._number
        arguments = [self._bootstrap, self._prefix, self._prefix, str(folder), str(port)]
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
        """Read until each line has been joined with its name."""
        deadline = time.monotonic() + PATIENCE_S
        while sum(map(len, self.written["named"].values())) < count:
            assert all(instance.poll() is None for instance in self.instances), "one has ended"
            done = sum(map(len, self.written["named"].values()))
            assert time.monotonic() < deadline, f"{done} of {count} lines are done"
            if self.read():
                deadline = time.monotonic() + PATIENCE_S

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


@pytest.fixture
def application(
    start_broker: StartBroker, topic: str, tmp_path: Path
) -> Iterator[tuple[Broker, Application, str]]:
    broker = start_broker(SETTINGS)
    for name in ("lines", "names", *OUTPUTS):
        topics.create(broker.bootstrap, f"{topic}-{name}", partitions=PARTITIONS)
    with contextlib.closing(Application(broker.bootstrap, topic, tmp_path)) as running:
        yield broker, running, topic


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


def described(broker: Broker, group_id: str) -> Any:
    with contextlib.closing(Requests((HOST, broker.port))) as requests:
        request = {"group_ids": [group_id]}
        (group,) = requests.ask_until_served(ApiKey.STREAMS_GROUP_DESCRIBE, 0, request).groups
        return group


def tasks_of(group: Any, kind: str) -> list[tuple[str, int]]:
    return sorted(
        (entry.subtopology_id, partition)
        for member in group.members
        for entry in getattr(member.assignment, kind)
        for partition in entry.partitions
    )


def is_stable(group: Any, members: int) -> bool:
    return group.group_state == "Stable" and len(group.members) == members


def check_results(written: dict[str, dict[str, list[Any]]], given: Input) -> None:
    """Check that each intermediate result was written once, in order."""
    words = Counter(
        word for lines in given.lines.values() for line in lines for word in line.split()
    )
    assert written["words"] == {word: list(range(1, n + 1)) for word, n in words.items()}
    for customer, lines in given.lines.items():
        sums = [sum(map(len, lines[: end + 1])) for end in range(len(lines))]
        assert written["lengths"][customer] == sums
        assert written["named"][customer] == [f"name of {customer}: {line}" for line in lines]
        windows = [
            counts for key, counts in written["hours"].items() if key.startswith(f"{customer}@")
        ]
        assert sum(map(len, windows)) == len(lines)
        assert all(counts == list(range(1, len(counts) + 1)) for counts in windows)


@pytest.mark.java
@pytest.mark.long
@pytest.mark.timeout(600)
def test_application_is_exact_when_instances_and_broker_are_killed(
    application: tuple[Broker, Application, str],
) -> None:
    broker, running, group_id = application
    given = Input(broker.bootstrap, group_id)
    first = running.start()
    running.wait_for(given.write(LINES // 3))
    second = running.start()
    eventually(lambda: is_stable(described(broker, group_id), 4), timeout_s=PATIENCE_S)
    group = described(broker, group_id)
    expected = [(name, partition) for name in ("0", "1") for partition in range(PARTITIONS)]
    assert tasks_of(group, "active_tasks") == expected
    assert tasks_of(group, "standby_tasks") == expected
    eventually(lambda: len(running.hosts(second, 2)) == 2, timeout_s=PATIENCE_S)
    assert all(active and standby for active, standby in running.hosts(second, 2).values())
    running.kill(first)
    running.wait_for(given.write(LINES // 3))
    third = running.start()
    broker.kill9()
    broker.start()
    running.wait_for(given.write(LINES // 3))
    eventually(lambda: is_stable(described(broker, group_id), 4), timeout_s=PATIENCE_S)
    for instance in (second, third):
        assert instance.stdin
        instance.stdin.close()
        instance.wait(PATIENCE_S)
        running.instances.remove(instance)
    eventually(lambda: described(broker, group_id).group_state == "Empty", timeout_s=WAIT_S)
    while running.read():
        pass
    check_results(running.written, given)
