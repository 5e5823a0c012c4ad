"""Kafka's TransactionalMessageCopier with random aborts copies every record once, in order."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from compat_tests.clients.message import WAIT_S
from compat_tests.support import topics
from compat_tests.transactions.drivers import java_programs
from compat_tests.transactions.drivers.confluent import ConfluentKafka

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

RECORDS = 1_000


@pytest.mark.java
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param((), id="alone", marks=pytest.mark.nightly),
        pytest.param(("--group-mode", "--use-group-metadata"), id="group"),
    ],
)
def test_copier_copies_each_record_once_despite_aborts(
    transaction_broker: Broker, topic: str, mode: tuple[str, ...]
) -> None:
    bootstrap = transaction_broker.bootstrap
    source, target = f"{topic}-in", f"{topic}-out"
    for name in (source, target):
        topics.create(bootstrap, name)
    values = [b"%d" % number for number in range(RECORDS)]
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(source, value, key=value, partition=0)
    assert producer.flush(WAIT_S) == 0

    options = {
        "--broker-list": bootstrap,
        "--input-topic": source,
        "--input-partition": "0",
        "--output-topic": target,
        "--max-messages": str(RECORDS),
        "--consumer-group": f"group-{topic}",
        "--transaction-size": "97",
        "--transactional-id": topic,
    }
    arguments = [word for option in options.items() for word in option]
    command = [*java_programs.copier_command(), *arguments, "--enable-random-aborts", *mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout[-1000:]}{done.stderr[-2000:]}"
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["stage"] == "ProcessComplete" or "remaining" in last, last
    assert last["remaining"] == 0
    assert ConfluentKafka().read(bootstrap, target, RECORDS) == values
