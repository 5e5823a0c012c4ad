"""testcontainers' Kafka classes start the unmodified image; clients reach it at their addresses."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificates

from compat_tests.containers.harness import started
from wirebroker.cli import main as cli

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

CLASSES = [
    ("python", "7.6.0", "zookeeper"),
    ("python", "7.6.0", "kraft"),
    ("java", "8.0.0", "apache"),
    ("java", "8.0.0", "confluent"),
    ("go", "8.0.0", ""),
    ("node", "8.0.0", ""),
    ("node", "7.6.0", "zookeeper"),
    ("node", "7.6.0", "kraft"),
    ("node", "7.2.0", "kraft"),
]


@pytest.mark.parametrize(("language", "tag", "variant"), CLASSES)
def test_testcontainers_class_starts_image_and_clients_connect(images, language, tag, variant):
    with started(language, images[tag], variant) as bootstrap:
        config = {"bootstrap.servers": bootstrap}
        producer = Producer(config)
        producer.produce("orders", b"a book")
        assert producer.flush(30) == 0
        consumer = Consumer(config | {"group.id": "shop", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(30)
        consumer.close()
        assert message is not None
        assert message.value() == b"a book"


def test_clients_log_in_over_tls_with_node_container_class(images, tmp_path):
    assert cli.run(["certs", str(tmp_path), "--host", "localhost", "--host", "127.0.0.1"]) == 0
    pem = (tmp_path / "broker.pem").read_bytes()
    store = pkcs12.serialize_key_and_certificates(
        b"broker",
        load_pem_private_key(pem, None),  # type: ignore[arg-type]
        load_pem_x509_certificates(pem)[0],
        None,
        BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "broker.p12").write_bytes(store)
    with started("node", images["8.0.0"], str(tmp_path / "broker.p12")) as bootstrap:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(tmp_path / "ca.pem"),
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "shop",
                "sasl.password": "secret",
            }
        )
        producer.produce("orders", b"a book")
        assert producer.flush(60) == 0
