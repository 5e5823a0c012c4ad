"""Kafka Streams at brokers with several listeners."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import confluent_kafka

from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import stored
from compat_tests.support import topics
from compat_tests.transactions.drivers import java_programs
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.security.listeners import Guarded

PATIENCE_S = 45.0


def count_words(
    broker: Guarded, address: str, settings: str, folder: Path, *, until: str = ""
) -> int:
    """Run Kafka Streams until it prints a text or has counted; return the number of written counts.

    Args:
        broker: The topics are created and filled at its open listener.
        address: The listener under test.
        settings: Its login.
        folder: For its state.
        until: Its output when it is refused; empty if it is accepted.
    """
    topic = new_topic_name()
    source, target, output_file = f"{topic}-lines", f"{topic}-counts", folder / "said"
    for name in (source, target):
        topics.create(broker.bootstrap, name, partitions=1)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(source, b"one two one")
    assert producer.flush(30) == 0
    file = folder / "streams.properties"
    file.write_text(settings)
    arguments = [address, topic, source, target, str(folder / "state"), str(file)]

    def is_over() -> bool:
        if until and until in output_file.read_text():
            return True
        assert application.poll() is None, output_file.read_text()
        return not until and stored(broker, target) >= len("121")

    with (
        output_file.open("w") as output,
        subprocess.Popen(
            [*java_programs.words_command(), *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        ) as application,
    ):
        try:
            eventually(is_over, timeout_s=PATIENCE_S)
        except AssertionError:
            raise AssertionError(output_file.read_text()[-2000:]) from None
        finally:
            application.kill()
    return stored(broker, target)
