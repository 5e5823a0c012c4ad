"""Kafka Streams under exactly_once_v2: words counted over repartition and changelog topics."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.support import topics
from compat_tests.transactions.drivers import java_programs
from compat_tests.transactions.settings import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

PARTITIONS = 3
LINES, WORDS_A_LINE = 3_000, 4
PATIENCE_S = 90.0  # maximum time without a count


class Counts:
    """The counts that a read_committed reader has seen, in order, word by word."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.by_word: dict[str, list[int]] = defaultdict(list)
        self.total = 0
        self._read_from: Consumer = confluent.make_consumer(
            bootstrap, {"isolation.level": "read_committed", "log_level": 2}
        )
        topic_partitions = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
        self._read_from.assign(topic_partitions)

    def close(self) -> None:
        self._read_from.close()

    def wait_for(self, total: int, application: subprocess.Popen[Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.total < total:
            assert application.poll() is None, "the application has ended"
            assert time.monotonic() < deadline, f"{self.total} of {total} counts came"
            for message in self._read_from.consume(500, 0.1):
                error = message.error()
                if error is not None:
                    assert error.code() != KafkaError.OFFSET_OUT_OF_RANGE, error
                    continue
                word = (message.key() or b"").decode()
                self.by_word[word].append(int.from_bytes(message.value() or b""))
                self.total += 1
                deadline = time.monotonic() + PATIENCE_S


@pytest.mark.java
@pytest.mark.timeout(600)
@pytest.mark.shows("produce, consume", "kafka-streams")
@pytest.mark.shows("consumer groups", "kafka-streams")
@pytest.mark.shows("transactions", "kafka-streams", "exactly_once_v2")
def test_word_counts_are_exact_when_broker_and_application_are_killed(
    start_broker: StartBroker, topic: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    choice = random.Random(request.config.getoption("--seed"))
    broker = start_broker(SETTINGS)
    source, target = f"{topic}-lines", f"{topic}-counts"
    for name in (source, target):
        topics.create(broker.bootstrap, name, partitions=PARTITIONS)
    words = [f"word{number}" for number in range(50)]
    lines = [choice.choices(words, k=WORDS_A_LINE) for _ in range(LINES)]
    expected = Counter(word for line in lines for word in line)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, line in enumerate(lines):
        producer.produce(source, " ".join(line).encode(), partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0

    def start() -> subprocess.Popen[bytes]:
        arguments = [broker.bootstrap, topic, source, target, str(tmp_path / "state")]
        with (tmp_path / "streams.log").open("ab") as log:
            return subprocess.Popen(
                [*java_programs.words_command(), *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    total = expected.total()
    counts = Counts(broker.bootstrap, target)
    application = start()
    try:
        counts.wait_for(choice.randrange(1, total // 3), application)
        kill(application)
        application = start()
        counts.wait_for(choice.randrange(counts.total + 1, total * 2 // 3), application)
        broker.kill9()
        broker.start()
        counts.wait_for(total, application)
        assert application.stdin
        application.stdin.close()
        application.wait(WAIT_S)
    finally:
        kill(application)
        counts.close()
    # Each intermediate count must also appear once, in order.
    assert counts.by_word == {word: list(range(1, n + 1)) for word, n in expected.items()}


def kill(application: subprocess.Popen[bytes]) -> None:
    application.kill()
    application.wait(WAIT_S)
    if application.stdin:
        application.stdin.close()
