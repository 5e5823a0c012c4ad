"""A consumer after its log has lost already consumed records, as after a power loss.

The test kills the broker, truncates the log file, and appends other records at the lost offsets and
beyond before the consumer fetches again. The consumer must detect the truncation (KIP-320) and read
them; by offsets alone it would skip them.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import confluent, java
from compat_tests.clients.message import WAIT_S
from compat_tests.support import topics
from tests.support.tools import tools
from tests.support.tools.waiting import eventually
from wirebroker.codecs.records.batch import iterate_batches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import StartBroker

FIRST = [f"first {number}" for number in range(15)]
SECOND = [f"second {number}" for number in range(12)]
KEPT = 5
assert len(FIRST) < KEPT + len(SECOND), "the new records go beyond the consumer's position"

# Prints each value, forever.
_LIBRDKAFKA = """
import sys
from confluent_kafka import Consumer, TopicPartition
_, bootstrap, topic = sys.argv
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none",
                     "enable.auto.commit": False, "auto.offset.reset": "earliest"})
consumer.assign([TopicPartition(topic, 0, 0)])
while True:
    message = consumer.poll(1.0)
    if message is not None and message.error() is None:
        print(message.value().decode(), flush=True)
"""


def librdkafka(bootstrap: str, topic: str) -> list[str]:
    return [sys.executable, "-c", _LIBRDKAFKA, bootstrap, topic]


def java_console(bootstrap: str, topic: str) -> list[str]:
    command = [tools.java_command(), "-Xmx128m", "-cp", f"{tools.kafka_jars()}/*"]
    command += [java.CONSOLE_CONSUMER, "--bootstrap-server", bootstrap, "--topic", topic]
    return [*command, "--partition", "0", "--offset", "earliest"]


@pytest.mark.parametrize(
    "command",
    [librdkafka, pytest.param(java_console, marks=[pytest.mark.java, pytest.mark.nightly])],
)
def test_consumer_reads_records_that_replaced_lost_log_tail(
    start_broker: StartBroker, topic: str, tmp_path: Path, command: object
) -> None:
    assert callable(command)
    broker = start_broker()
    topics.create(broker.bootstrap, topic)
    produce(broker.bootstrap, topic, FIRST)
    output = tmp_path / "values"
    with consuming(command(broker.bootstrap, topic), output) as process:
        eventually(lambda: lines_of(output) == FIRST, timeout_s=WAIT_S)
        process.send_signal(signal.SIGSTOP)
        broker.kill9()
        cut(broker.data_dir / f"{topic}-0" / f"{0:020}.log", KEPT)
        broker.start()
        produce(broker.bootstrap, topic, SECOND)
        process.send_signal(signal.SIGCONT)
        eventually(lambda: SECOND[-1] in lines_of(output), timeout_s=WAIT_S)
    assert lines_of(output) == FIRST + SECOND


@contextlib.contextmanager
def consuming(command: list[str], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def lines_of(output: Path) -> list[str]:
    return output.read_text().split("\n")[:-1]


def produce(bootstrap: str, topic: str, values: list[str]) -> None:
    producer = confluent.make_producer(bootstrap, {"linger.ms": 0})
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
        assert producer.flush(WAIT_S) == 0


def cut(log: Path, offset: int) -> None:
    content = log.read_bytes()
    position = next(
        position
        for position, header in iterate_batches(memoryview(content))
        if header.base_offset == offset
    )
    with log.open("r+b") as file:
        file.truncate(position)
