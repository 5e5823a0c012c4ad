"""Stock clients authenticate with each of their mechanisms, or are refused alike."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import confluent_kafka
import kafka
import kafka.errors
import pytest

from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.secured import (
    MECHANISMS,
    PASSWORD,
    SecuredKafka,
    add_alice,
    change_users,
    secured_broker,
)
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.security.secured import SecuredWirebroker

    Secured = SecuredKafka | SecuredWirebroker


@pytest.fixture(
    scope="module",
    params=["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.nightly])],
)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    with secured_broker(request.param, tmp_path_factory.mktemp("secured")) as running:
        add_alice(running)
        yield running


def address(broker: Secured) -> str:
    return f"{HOST}:{broker.secured_port}"


def librdkafka(broker: Secured, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        "bootstrap.servers": address(broker),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
    }


def kafka_python(broker: Secured, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        "bootstrap_servers": address(broker),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_authenticates_writes_and_reads(secured: Secured, mechanism: str) -> None:
    topic = new_topic_name()
    settings = librdkafka(secured, mechanism)
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"one")
    assert producer.flush(30) == 0
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    assert (message.error(), message.value()) == (None, b"one")
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_gets_error_for_wrong_password(secured: Secured, mechanism: str) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    settings = {**librdkafka(secured, mechanism, "wrong"), "error_cb": errors.append}
    producer = confluent_kafka.Producer(settings)
    eventually(
        lambda: (
            producer.poll(0.1) is not None
            and any(
                error.code() == confluent_kafka.KafkaError._AUTHENTICATION
                and "Authentication failed" in error.str()
                for error in errors
            )
        )
    )


# A producer whose creation failed leaves its sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_authenticates_or_is_rejected(secured: Secured, mechanism: str) -> None:
    topic = new_topic_name()
    producer = kafka.KafkaProducer(**kafka_python(secured, mechanism))
    assert producer.send(topic, b"one").get(timeout=30).offset == 0
    producer.close()
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaProducer(
            **kafka_python(secured, mechanism, "wrong"), bootstrap_timeout_ms=1500
        ).close()
    gc.collect()  # now, not in another test


@pytest.mark.java
def test_java_clients_log_in_as_users_created_by_kafka_configs(
    secured: Secured, tmp_path: Path
) -> None:
    def configs(*arguments: str) -> str:
        return java.run(secured.bootstrap, java.CONFIGS, "--entity-type", "users", *arguments)

    add = "SCRAM-SHA-512=[iterations=8192,password=bob-secret]"
    configs("--entity-name", "bob", "--alter", "--add-config", add)
    of_bob = ("--entity-name", "bob", "--describe")
    eventually(lambda: "SCRAM-SHA-512=iterations=8192" in configs(*of_bob))
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    file = tmp_path / "client.properties"
    for password, is_right in (("bob-secret", True), ("wrong", False)):
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={module} required username="bob" password="{password}";\n'
        )
        status, printed = java.attempt(
            address(secured), java.TOPICS, "--list", "--command-config", str(file)
        )
        assert (status == 0) is is_right
        assert ("SaslAuthenticationException" in printed) is not is_right
    configs("--entity-name", "bob", "--alter", "--delete-config", "SCRAM-SHA-512")
    eventually(lambda: "SCRAM-SHA-512" not in configs(*of_bob))


def test_users_log_in_after_a_restart_that_follows_the_deletion_of_others(secured: Secured) -> None:
    if isinstance(secured, SecuredKafka):
        pytest.skip("Apache Kafka 4.4.0 can forget all users then (ScramDelta.apply)")
    names = [f"team-{number}-user" for number in range(20)]
    change_users(secured, names, is_deletion=False)
    change_users(secured, names, is_deletion=True)
    secured.kill9()
    secured.start()
    for mechanism in MECHANISMS:
        producer = confluent_kafka.Producer(librdkafka(secured, mechanism))
        producer.produce(new_topic_name(), b"one")
        assert producer.flush(30) == 0
