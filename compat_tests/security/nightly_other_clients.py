"""Clients of Node and Go, and Kafka Streams, by everything they can log in with.

By PLAIN and SCRAM over TLS, by tokens that nobody has signed, with TLS and without, by a
certificate of their own: who has the right one writes and reads, who has not is refused and writes
nothing.
The other clients: nightly_mechanisms.py, nightly_rust.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from compat_tests import tools_go, tools_node, topics
from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import stored
from compat_tests.security.logins import WAYS, logins
from compat_tests.transactions import java_programs
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.security.listeners import Guarded
    from compat_tests.security.logins import Login

pytestmark = pytest.mark.long

_PATIENCE_S = 45.0
PROGRAMS: dict[str, Callable[[str], list[str]]] = {
    "kafkajs": tools_node.secured_command,
    "platformatic": tools_node.secured_command,
    "franz": tools_go.secured_command,
    "sarama": tools_go.secured_command,
}


def run(client: str, login: Login, topic: str) -> str:
    """Have a client write and read; return what it says."""
    told = json.dumps({**dataclasses.asdict(login), "topic": topic})
    done = subprocess.run(
        [*PROGRAMS[client](client), told],
        env={**os.environ, **tools_node.member_environment()},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", PROGRAMS)
def test_who_is_let_in_writes_and_reads_and_nobody_else(
    guarded: tuple[Guarded, Path], client: str, way: str
) -> None:
    broker, folder = guarded
    topic = new_topic_name()
    topics.create(broker.bootstrap, topic, partitions=1)
    right, wrong = logins(broker, folder, way)
    assert run(client, right, topic) == "read 0\n"
    told = run(client, wrong, topic)
    assert told.startswith("refused: "), told
    assert stored(broker, topic) == 1


@pytest.mark.java
@pytest.mark.parametrize("way", WAYS)
def test_kafka_streams_counts_if_it_is_let_in(
    guarded: tuple[Guarded, Path], tmp_path: Path, way: str
) -> None:
    broker, folder = guarded
    right, wrong = logins(broker, folder, way)
    assert not count_words(broker, wrong, tmp_path, until="AuthenticationException")
    assert count_words(broker, right, tmp_path, until="")


def count_words(broker: Guarded, login: Login, folder: Path, *, until: str) -> int:
    """Run Kafka Streams until it says something or has counted; return how many counts it wrote."""
    topic = new_topic_name()
    source, target, said = f"{topic}-lines", f"{topic}-counts", folder / "said"
    for name in (source, target):
        topics.create(broker.bootstrap, name, partitions=1)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(source, b"one two one")
    assert producer.flush(30) == 0
    settings = folder / "streams.properties"
    settings.write_text(login.as_properties())
    arguments = [login.address, topic, source, target, str(folder / "state"), str(settings)]

    def is_over() -> bool:
        assert application.poll() is None, said.read_text()
        return until in said.read_text() if until else stored(broker, target) >= len("121")

    with (
        said.open("w") as output,
        subprocess.Popen(
            [*java_programs.words_command(), *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        ) as application,
    ):
        try:
            eventually(is_over, timeout_s=_PATIENCE_S)
        except AssertionError:
            raise AssertionError(said.read_text()[-2000:]) from None
        finally:
            application.kill()
    return stored(broker, target)
