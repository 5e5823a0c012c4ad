"""Kills at random moments: no record is lost, delivered twice or early."""

from __future__ import annotations

import threading
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from tests.support.delivery.delivery_process import DeliveryProcess, committed_records
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

RECORDS = 200
NIGHTLY_RECORDS = 1_000
NIGHTLY_RUNS = 100
_LONGEST_DELAY_MS = 4_000
_KILLS = 6
_PATIENCE_S = 150.0


def send_records(bootstrap: str, count: int, random: Random) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    )
    failures: list[object] = []

    def note(error, _message) -> None:
        if error is not None:
            failures.append(error)

    for number in range(count):
        after = str(random.randrange(_LONGEST_DELAY_MS))
        headers: Any = {"deliver-to": "orders", "deliver-after": after}
        producer.produce(
            "deliver", b"%d" % number, b"%d" % (number % 17), headers=headers, on_delivery=note
        )
        if number % 20 == 0:
            producer.flush(0.2)
    assert producer.flush(120) == 0
    assert not failures


def check_records(bootstrap: str, count: int) -> None:
    due = {}
    for message in committed_records(bootstrap, "deliver"):
        headers = dict(message.headers())
        due[message.value()] = message.timestamp()[1] + int(headers["deliver-after"])
    delivered = committed_records(bootstrap, "orders")
    counts = Counter(message.value() for message in delivered)
    assert {value: n for value, n in counts.items() if n > 1} == {}
    assert set(counts) == set(due)
    assert len(due) == count
    early = [m.value() for m in delivered if m.timestamp()[1] < due[m.value()]]
    assert early == []
    assert committed_records(bootstrap, "deliver.dead-letters") == []


def run_with_kills(start_broker: StartBroker, folder: Path, count: int, seed: int) -> None:
    random = Random(seed)
    broker = start_broker({"group.min.session.timeout.ms": "1000"})
    settings = {"wirebroker.delivery.session.timeout.ms": 3_000}
    instances = [
        DeliveryProcess(broker.bootstrap, folder / name, settings) for name in ("one", "two")
    ]
    sender = threading.Thread(target=send_records, args=(broker.bootstrap, count, Random(seed)))
    try:
        for instance in instances:
            instance.start()
            instance.wait_until_ready()
        topics = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        topics.list_topics("orders", timeout=30)
        sender.start()
        pause = threading.Event()
        for _ in range(_KILLS):
            pause.wait(random.uniform(0.2, 2.0))
            if random.random() < 0.3:
                broker.kill9()
                broker.start()
            else:
                killed = random.choice(instances)
                killed.kill()
                pause.wait(random.uniform(0, 0.5))
                killed.start()
        sender.join()
        wanted = count
        eventually(
            lambda: len(committed_records(broker.bootstrap, "orders")) >= wanted,
            timeout_s=_PATIENCE_S,
            poll_s=1.0,
        )
        check_records(broker.bootstrap, count)
    finally:
        for instance in instances:
            instance.stop()
        if sender.ident is not None:
            sender.join()


def test_kills_lose_and_repeat_nothing(start_broker: StartBroker, tmp_path: Path) -> None:
    run_with_kills(start_broker, tmp_path, RECORDS, seed=1)


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", range(NIGHTLY_RUNS))
def test_many_kills_lose_and_repeat_nothing(
    start_broker: StartBroker, tmp_path: Path, seed: int
) -> None:
    run_with_kills(start_broker, tmp_path, NIGHTLY_RECORDS, seed=seed)
