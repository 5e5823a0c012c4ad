"""The kit's brokers with TLS and SASL: stock clients connect with client_config."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import aiokafka
import confluent_kafka
import kafka
import pytest

from wirebroker.testing import Broker
from wirebroker.testing.clients.protection import Protection, _certificates

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.testing.clients.protection import SaslName


@pytest.mark.parametrize(("tls", "sasl"), [(True, "SCRAM-SHA-256"), (True, None), (False, "PLAIN")])
def test_clients_connect_with_their_client_config(tls: bool, sasl: SaslName | None) -> None:
    with Broker(tls=tls, sasl=sasl) as broker:
        broker.create_topic("t")
        producer = confluent_kafka.Producer(broker.client_config("confluent"))
        producer.produce("t", b"confluent")
        assert producer.flush(20) == 0
        other = kafka.KafkaProducer(**broker.client_config("kafka-python"))
        other.send("t", b"kafka-python").get(20)
        other.close()

        async def send() -> None:
            third = aiokafka.AIOKafkaProducer(**broker.client_config("aiokafka"))
            await third.start()
            await third.send_and_wait("t", b"aiokafka")
            await third.stop()

        asyncio.run(send())
        values = [record.value for record in broker.records("t")]
        assert values == [b"confluent", b"kafka-python", b"aiokafka"]


def test_wrong_credentials_are_refused() -> None:
    with Broker(tls=True, sasl="SCRAM-SHA-512") as broker:
        config = broker.client_config("confluent")
        for name, value in (("sasl.password", "x"), ("security.protocol", "PLAINTEXT")):
            producer = confluent_kafka.Producer({**config, name: value, "log_level": 0})
            with pytest.raises(confluent_kafka.KafkaException):
                producer.list_topics(timeout=1)


def test_protection_survives_kill_reset_and_own_process() -> None:
    with Broker.spawn(tls=True, sasl="SCRAM-SHA-256") as broker:
        broker.produce("t", "one")
        broker.kill()
        broker.start()
        assert [record.value for record in broker.records("t")] == [b"one"]
        broker.reset()
        producer = confluent_kafka.Producer(broker.client_config("confluent"))
        assert "t" not in producer.list_topics(timeout=20).topics


def test_spark_config_uses_java_settings() -> None:
    with Broker(tls=True, sasl="PLAIN") as broker:
        config = broker.client_config("spark")
        assert config["kafka.security.protocol"] == "SASL_SSL"
        assert 'username="test"' in config["kafka.sasl.jaas.config"]
    with pytest.raises(ValueError, match="it is one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        Broker(sasl="GSSAPI")  # type: ignore[arg-type]


def test_tls_without_its_library_names_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "wirebroker.security.tls.certificates", None)
    _certificates.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'wirebroker\[tls\]'"):
        Protection(tmp_path, tls=True, sasl=None)


def test_a_mechanism_that_the_kit_does_not_set_up_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="OAUTHBEARER"):
        Protection(tmp_path, tls=False, sasl="OAUTHBEARER")  # type: ignore[arg-type]
