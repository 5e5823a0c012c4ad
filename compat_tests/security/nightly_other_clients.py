"""Clients of Node and Go, and Kafka Streams, with every login that they support.

PLAIN and SCRAM over TLS, unsigned tokens with and without TLS, client certificates: a client with
valid credentials writes and reads, any other is refused and writes nothing.
Kerberos: nightly_kerberos.py. Other clients: nightly_mechanisms.py, nightly_rust.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from compat_tests.security.listeners import stored
from compat_tests.security.logins import WAYS, logins
from compat_tests.security.streams import PATIENCE_S, count_words
from compat_tests.support import tools_go, tools_node, topics

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.security.listeners import Guarded
    from compat_tests.security.logins import Login

pytestmark = pytest.mark.long

PROGRAMS: dict[str, Callable[[str], list[str]]] = {
    "kafkajs": tools_node.secured_command,
    "platformatic": tools_node.secured_command,
    "franz": tools_go.secured_command,
    "sarama": tools_go.secured_command,
}


def run(client: str, login: Login, topic: str) -> str:
    login_text = json.dumps({**dataclasses.asdict(login), "topic": topic})
    done = subprocess.run(
        [*PROGRAMS[client](client), login_text],
        env={**os.environ, **tools_node.member_environment()},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", PROGRAMS)
def test_only_authenticated_clients_write_and_read(
    guarded: tuple[Guarded, Path], client: str, way: str
) -> None:
    broker, folder = guarded
    topic = topics.create_new(broker.bootstrap)
    right, wrong = logins(broker, folder, way)
    assert run(client, right, topic) == "read 0\n"
    output = run(client, wrong, topic)
    assert output.startswith("refused: "), output
    assert stored(broker, topic) == 1


@pytest.mark.java
@pytest.mark.parametrize("way", WAYS)
def test_kafka_streams_works_only_if_authenticated(
    guarded: tuple[Guarded, Path], tmp_path: Path, way: str
) -> None:
    broker, folder = guarded
    right, wrong = logins(broker, folder, way)
    refused = count_words(
        broker, wrong.address, wrong.as_properties(), tmp_path, until="AuthenticationException"
    )
    assert refused == 0
    assert count_words(broker, right.address, right.as_properties(), tmp_path)
