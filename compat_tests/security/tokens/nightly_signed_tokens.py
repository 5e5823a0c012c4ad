"""Tokens signed by an identity provider: both brokers accept and refuse the same ones.

The test's servers publish keys (JWKS) and issue tokens to clients with the secret (OIDC client
credentials). Stock clients and our own verbs request them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import confluent_kafka
import pytest

from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.secured import SecuredKafka, SecuredWirebroker
from compat_tests.security.tokens_by_hand import (
    AUDIENCE,
    ELLIPTIC,
    ISSUER,
    STRANGER,
    changed,
    keys,
    now,
    own_key_within,
    signed,
    signed_as_it_is,
    signed_with_the_public_key,
    unsigned,
)
from tests.support.brokers import java_start
from tests.support.http.web_server import WebServer, web_server
from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import send_token, shake_hands
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Secured = SecuredKafka | SecuredWirebroker

pytestmark = pytest.mark.long

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
MODULE: Final = f"{PACKAGE}OAuthBearerLoginModule required"
ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
SKEW_S: Final = 30  # Kafka's default of sasl.oauthbearer.clock.skew.seconds


class Identities:
    """The identity provider: its keys, and tokens for clients."""

    def __init__(self, keys_server: WebServer, tokens_server: WebServer) -> None:
        self.keys, self.tokens = keys_server, tokens_server
        self.keys.body = keys()
        self.tokens.headers["Content-Type"] = "application/json"
        self.give(signed())

    @property
    def allowed(self) -> str:
        return f"{self.keys.url()},{self.tokens.url('/token')}"

    def give(self, token: str) -> None:
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": 300}
        self.tokens.body = json.dumps(answer).encode()


@pytest.fixture(scope="module")
def identities() -> Iterator[Identities]:
    with web_server() as keys_server, web_server() as tokens_server:
        yield Identities(keys_server, tokens_server)


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def secured(
    request: pytest.FixtureRequest,
    identities: Identities,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    prefix = "listener.name.sasl_plaintext."
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}oauthbearer.sasl.jaas.config": f"{MODULE};",
        f"{prefix}oauthbearer.sasl.server.callback.handler.class": (
            f"{PACKAGE}OAuthBearerValidatorCallbackHandler"
        ),
        f"{prefix}sasl.oauthbearer.jwks.endpoint.url": identities.keys.url(),
        f"{prefix}sasl.oauthbearer.expected.issuer": ISSUER,
        f"{prefix}sasl.oauthbearer.expected.audience": f"{AUDIENCE},other",
        ALLOWED: identities.allowed,
    }
    folder = tmp_path_factory.mktemp("secured")
    running: Secured
    if request.param == "apache":
        options = (*java_start.options(), f"-D{ALLOWED}={identities.allowed}")
        running = SecuredKafka(folder, settings, java_options=options)
    else:
        running = SecuredWirebroker(folder, settings)
    with running:
        yield running


BELIEVED: dict[str, Callable[[], str]] = {
    "signed by RSA": signed,
    "signed by an elliptic key": lambda: signed(ELLIPTIC, "ES256", {"kid": "two"}),
    "for several audiences": lambda: signed(aud=["elsewhere", "other"]),
    "ended within the skew": lambda: signed(iat=now() - 60, exp=now() - SKEW_S // 2),
    "not valid yet, within the skew": lambda: signed(nbf=now() + SKEW_S // 2),
    "made in an hour": lambda: signed(iat=now() + 3600, exp=now() + 7200),
    "with half a second": lambda: signed(exp=now() + 100.5),
    "with a scope that is a number": lambda: signed(scope=7),
    "with scopes": lambda: signed(scope="read write"),
    "with a list of scopes": lambda: signed(scope=["read", "write"]),
    "with additional claims": lambda: signed(groups=["a"], deep={"x": [1, {"y": None}]}),
}
REFUSED: dict[str, Callable[[], str]] = {
    "another issuer's": lambda: signed(iss="https://elsewhere.example.org"),
    "without an issuer": lambda: signed(iss=None),
    "for another audience": lambda: signed(aud="elsewhere"),
    "for no audience": lambda: signed(aud=None),
    "of a user without a name": lambda: signed(sub=""),
    "of no user": lambda: signed(sub=None),
    "that ended before it was made": lambda: signed(exp=now() - SKEW_S // 2),
    "that ends before it is valid": lambda: signed(exp=now() + 5, nbf=now() + 10),
    "that does not say when it was made": lambda: signed(iat=None),
    "with an end in words": lambda: signed_as_it_is(exp="soon"),
    "of a number": lambda: signed_as_it_is(sub=7),
    "ended": lambda: signed(iat=now() - 3600, exp=now() - 10 * SKEW_S),
    "without an end": lambda: signed(exp=None),
    "not valid yet": lambda: signed(nbf=now() + 10 * SKEW_S),
    "signed by a stranger": lambda: signed(STRANGER),
    "signed by another key than it names": lambda: signed(header={"kid": "two"}),
    "of an unknown key": lambda: signed(STRANGER, header={"kid": "three"}),
    "signed with the public key": signed_with_the_public_key,
    "not signed": lambda: unsigned("none"),
    "not signed, in capitals": lambda: unsigned("NONE"),
    "with another's signature": changed,
    "with its key included": own_key_within,
    "with an unknown critical header": lambda: signed(header={"crit": ["x"], "x": 1}),
    "of two parts": lambda: ".".join(signed().split(".")[:2]),
    "of words": lambda: "a.b.c",
    "with an empty signature": lambda: ".".join([*signed().split(".")[:2], ""]),
}


async def answer_to(broker: Secured, token: str) -> tuple[int, bytes]:
    client = await RawClient.connect((HOST, broker.secured_port))
    try:
        await shake_hands(client, "OAUTHBEARER")
        answer = await send_token(client, f"n,,\x01auth=Bearer {token}\x01\x01".encode())
        return answer.error_code, answer.auth_bytes
    finally:
        await client.close()


@pytest.mark.parametrize("what", BELIEVED)
def test_token_is_accepted(secured: Secured, what: str) -> None:
    assert asyncio.run(answer_to(secured, BELIEVED[what]())) == (0, b"")


@pytest.mark.parametrize("what", REFUSED)
def test_token_is_rejected(secured: Secured, what: str) -> None:
    answer = asyncio.run(answer_to(secured, REFUSED[what]()))
    assert answer == (0, b'{"status":"invalid_token"}')


def test_addresses_in_token_are_not_contacted(secured: Secured, identities: Identities) -> None:
    with web_server() as elsewhere:
        elsewhere.body = keys()
        for name in ("jku", "x5u"):
            token = signed(STRANGER, header={name: elsewhere.url(), "kid": "four"})
            assert asyncio.run(answer_to(secured, token)) == (0, b'{"status":"invalid_token"}')
        assert elsewhere.asked == []
    assert identities.keys.asked


# --- clients that request tokens ---


def properties(folder: Path, identities: Identities, secret: str = "asked-secret") -> str:
    """Write the settings of Java's client and of our own verbs; return the file's path."""
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={PACKAGE}OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={identities.tokens.url('/token')}\n"
        f'sasl.jaas.config={MODULE} clientId="asker" clientSecret="{secret}" scope="a b";\n'
    )
    return str(file)


def asked_for_a_token(identities: Identities) -> tuple[str, bytes]:
    """Return client and scope of the last token request."""
    request = identities.tokens.asked[-1]
    assert (request.method, request.path) == ("POST", "/token")
    kind, _, credentials = request.headers["Authorization"].partition(" ")
    assert kind == "Basic"
    return base64.b64decode(credentials).decode(), request.body


@pytest.mark.java
def test_java_client_requests_token(
    secured: Secured, identities: Identities, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={identities.allowed}")
    file = properties(tmp_path, identities)
    address = f"{HOST}:{secured.secured_port}"
    for token, status in ((signed(), 0), (signed(STRANGER), 1)):
        identities.give(token)
        exit_status, printed = java.attempt(
            address, java.TOPICS, "--list", "--command-config", file
        )
        assert exit_status == status, printed
        assert ("SaslAuthenticationException" in printed) is bool(status)
        client_credentials, request_body = asked_for_a_token(identities)
        assert client_credentials == "asker:asked-secret"
        assert b"grant_type=client_credentials" in request_body
        assert b"scope=a" in request_body


def test_verbs_request_token(secured: Secured, identities: Identities, tmp_path: Path) -> None:
    file = properties(tmp_path, identities)
    command = [sys.executable, "-m", "wirebroker", "topic", "list"]
    command += ["-b", f"{HOST}:{secured.secured_port}", "--client-config", file]
    for token, status in ((signed(), 0), (signed(STRANGER), 1)):
        identities.give(token)
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=90, check=False, env={**os.environ}
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert ("invalid_token" in done.stdout + done.stderr) is bool(status)
        client_credentials, request_body = asked_for_a_token(identities)
        assert client_credentials == "asker:asked-secret"
        assert b"grant_type=client_credentials" in request_body


def test_librdkafka_requests_token(secured: Secured, identities: Identities) -> None:
    settings = {
        "bootstrap.servers": f"{HOST}:{secured.secured_port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "asker",
        "sasl.oauthbearer.client.secret": "asked-secret",
        "sasl.oauthbearer.token.endpoint.url": identities.tokens.url("/token"),
    }
    identities.give(signed())
    producer = confluent_kafka.Producer(settings)
    delivery_errors: list[confluent_kafka.KafkaError | None] = []
    producer.produce(
        new_topic_name(), b"one", on_delivery=lambda error, _: delivery_errors.append(error)
    )
    assert producer.flush(60) == 0
    assert delivery_errors == [None]
    assert asked_for_a_token(identities)[0] == "asker:asked-secret"
    identities.give(signed(STRANGER))
    errors: list[confluent_kafka.KafkaError] = []
    refused = confluent_kafka.Producer({**settings, "error_cb": errors.append})
    eventually(
        lambda: (
            refused.poll(0.1) is not None
            and any("invalid_token" in error.str() for error in errors)
        )
    )
