"""Clients of Node and Go, and Kafka Streams, by everything they can log in with.

By PLAIN and SCRAM over TLS, by tokens that nobody has signed, by a certificate of their own: who
has the right one writes and reads, who has not is refused and writes nothing. The other clients:
nightly_mechanisms.py, nightly_rust.py.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from compat_tests import tools_go, tools_node, topics
from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import stored
from compat_tests.security.secured import MECHANISMS, PASSWORD
from compat_tests.transactions import java_programs
from tests.support.ports import HOST
from tests.support.tls_files import client_certificate, write
from tests.support.waiting import eventually
from wirebroker.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.security.listeners import Guarded

pytestmark = pytest.mark.long

_PATIENCE_S = 45.0
_MODULES = "org.apache.kafka.common.security"
PROGRAMS: dict[str, Callable[[str], list[str]]] = {
    "kafkajs": tools_node.secured_command,
    "platformatic": tools_node.secured_command,
    "franz": tools_go.secured_command,
    "sarama": tools_go.secured_command,
}
WAYS = (*MECHANISMS, "OAUTHBEARER", "certificate")


@dataclass(frozen=True)
class Login:
    """Where to, as whom; what is empty is not used.

    Attributes:
        ca: A PEM file, if the connection is by TLS.
        own: A PEM file with key and certificate.
    """

    address: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    ca: str = ""
    own: str = ""

    def as_properties(self) -> str:
        """Return settings of Kafka's own clients."""
        security = f"{'SASL_' if self.mechanism else ''}{'SSL' if self.ca else 'PLAINTEXT'}"
        lines = [f"security.protocol={security}"]
        if self.ca:
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.ca}"]
        if self.own:
            lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={self.own}"]
        if self.mechanism:
            lines += [f"sasl.mechanism={self.mechanism}", f"sasl.jaas.config={self._jaas()}"]
        return "\n".join([*lines, ""])

    def _jaas(self) -> str:
        if (
            self.mechanism == "OAUTHBEARER"
        ):  # they make theirs themselves, here one without a subject
            claim = "sub" if self.user else "other"
            return (
                f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
                f'unsecuredLoginPrincipalClaimName="{claim}" '
                f'unsecuredLoginStringClaim_{claim}="alice";'
            )
        kind = "plain.Plain" if self.mechanism == "PLAIN" else "scram.Scram"
        return (
            f"{_MODULES}.{kind}LoginModule required "
            f'username="{self.user}" password="{self.password}";'
        )


def token(lives_s: int = 300) -> str:
    """Return a token of alice's that nobody has signed."""
    now = SystemClock().now_ms() // 1000
    claims = {"sub": "alice", "iat": now - 600, "exp": now + lives_s}
    parts = (json.dumps(each).encode() for each in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts) + "."


def logins(broker: Guarded, folder: Path, way: str) -> tuple[Login, Login]:
    """Return one that is let in, and one that isn't."""
    ca = str(folder / "authority.pem")
    if way == "certificate":
        right = Login(f"{HOST}:{broker.ports['OWN']}", ca=ca)
        own = write(folder, "client.pem", client_certificate())
        return dataclasses.replace(right, own=own), right
    if way == "OAUTHBEARER":
        right = Login(f"{HOST}:{broker.ports['TOKENS']}", way, "alice", token=token())
        return right, dataclasses.replace(right, user="", token=token(-300))
    right = Login(f"{HOST}:{broker.ports['LOGIN']}", way, "alice", PASSWORD, ca=ca)
    return right, dataclasses.replace(right, password="another")


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
