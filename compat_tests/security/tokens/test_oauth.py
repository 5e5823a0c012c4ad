"""Stock clients log in to both brokers by OAUTHBEARER with unsigned tokens."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import confluent_kafka
import kafka
import kafka.net.sasl.oauth
import pytest

from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.secured import SecuredKafka, SecuredWirebroker
from tests.support.brokers import java_start
from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import shake_hands
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Secured = SecuredKafka | SecuredWirebroker

ENDS = (ConnectionError, EOFError)
_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SETTINGS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
        f'{_MODULE} required unsecuredValidatorRequiredScope="kafka" '
        'unsecuredLoginStringClaim_sub="broker";'
    ),
}


@pytest.fixture(
    scope="module",
    params=["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.nightly])],
)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with (
        SecuredKafka(folder, SETTINGS, java_options=java_start.options())
        if request.param == "apache"
        else SecuredWirebroker(folder, SETTINGS)
    ) as running:
        yield running


def address(broker: Secured) -> str:
    return f"{HOST}:{broker.secured_port}"


def librdkafka(broker: Secured, scope: str = "kafka") -> dict[str, str]:
    return {
        "bootstrap.servers": address(broker),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"principal=alice scope={scope}",
    }


def test_librdkafka_logs_in(secured: Secured) -> None:
    producer = confluent_kafka.Producer(librdkafka(secured))
    delivery_errors: list[confluent_kafka.KafkaError | None] = []
    producer.produce(
        new_topic_name(), b"one", on_delivery=lambda error, _: delivery_errors.append(error)
    )
    assert producer.flush(30) == 0
    assert delivery_errors == [None]


def test_librdkafka_is_rejected_without_scope(secured: Secured) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer({**librdkafka(secured, "other"), "error_cb": errors.append})
    eventually(
        lambda: (
            producer.poll(0.1) is not None
            and any("insufficient_scope" in error.str() for error in errors)
        )
    )


class TokenProvider(kafka.net.sasl.oauth.AbstractTokenProvider):
    def token(self) -> str:
        now = SystemClock().now_ms() // 1000
        claims = {"sub": "alice", "iat": now, "exp": now + 300, "scope": ["kafka"]}
        parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def test_kafka_python_logs_in(secured: Secured) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=address(secured),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=TokenProvider(),
    )
    assert producer.send(new_topic_name(), b"one").get(timeout=30).offset == 0
    producer.close()


@pytest.mark.java
def test_java_client_logs_in(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={_MODULE} required unsecuredLoginStringClaim_sub="alice" '
        'unsecuredLoginStringClaim_scope="kafka";\n'
    )
    arguments = ("--list", "--command-config", str(file))
    status, printed = java.attempt(address(secured), java.TOPICS, *arguments)
    assert status == 0, printed


async def test_request_during_login_closes_connection(secured: Secured) -> None:
    """Apache Kafka first responds without brokers (docs/compatibility.md)."""
    client = await RawClient.connect((HOST, secured.secured_port))
    try:
        await shake_hands(client, "OAUTHBEARER")
        if isinstance(secured, SecuredKafka):
            assert (await client.ask(ApiKey.METADATA, 12, {"topics": []})).brokers == []
        else:
            with pytest.raises(ENDS):
                await client.ask(ApiKey.METADATA, 12, {"topics": []})
        with pytest.raises(ENDS):
            await client.ask(ApiKey.METADATA, 12, {"topics": []})
    finally:
        await client.close()
