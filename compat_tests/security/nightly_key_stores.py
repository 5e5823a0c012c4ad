"""PKCS12 keystores and truststores of two tools, read by both brokers and by Java's client.

STORES   type PKCS12, written by Python's cryptography
STOCK    unset type (Java's default, JKS), written by keytool, which writes PKCS12
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import confluent_kafka
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from compat_tests.clients import java
from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import KafkaOfListeners, WirebrokerOfListeners, protocol_map
from tests.support.brokers import java_start
from tests.support.brokers.brokers import AUTHORIZED
from tests.support.security.tls_files import authority, certificate, client_certificate, write
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    Guarded = KafkaOfListeners | WirebrokerOfListeners

pytestmark = [
    pytest.mark.java,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("keytool") is None, reason="there is no keytool"),
]

PASSWORD: Final = "store-secret"
PROTOCOLS: Final = {"STORES": "SSL", "STOCK": "SSL"}


class Stores(NamedTuple):
    keys: str
    trusted: str


class _Kafka(KafkaOfListeners):
    protocols = PROTOCOLS


class _Wirebroker(WirebrokerOfListeners):
    protocols = PROTOCOLS


def by_cryptography(folder: Path, pem: str, authority_name: str) -> Stores:
    certificate_index = pem.index("-----BEGIN CERTIFICATE")
    key = load_pem_private_key(pem[:certificate_index].encode(), None)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    trusted = x509.load_pem_x509_certificate(authority(authority_name).certificate.encode())
    chain = x509.load_pem_x509_certificate(pem[certificate_index:].encode())
    folder.mkdir(parents=True)
    stores = Stores(str(folder / "keys.p12"), str(folder / "trusted.p12"))
    data = pkcs12.serialize_key_and_certificates(b"own", key, chain, [trusted], encryption)  # type: ignore[arg-type]
    Path(stores.keys).write_bytes(data)
    entry = pkcs12.PKCS12Certificate(trusted, b"authority")
    Path(stores.trusted).write_bytes(pkcs12.serialize_java_truststore([entry], encryption))
    return stores


def by_keytool(folder: Path, pem: str, authority_name: str) -> Stores:
    """Write both with Java's keytool, without a type."""
    from_python = by_cryptography(folder / "from", pem, authority_name)
    stores = Stores(str(folder / "keys"), str(folder / "trusted"))
    authorities = write(folder, "authority.pem", authority(authority_name).certificate)
    source = ["-srckeystore", from_python.keys, "-srcstorepass", PASSWORD]
    keytool("-importkeystore", *source, "-destkeystore", stores.keys, "-deststorepass", PASSWORD)
    trusting = ["-alias", "authority", "-file", authorities, "-keystore", stores.trusted]
    keytool("-importcert", "-noprompt", *trusting, "-storepass", PASSWORD)
    return stores


def keytool(*arguments: str) -> None:
    done = subprocess.run(
        ["keytool", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


WRITERS: Final = {"PKCS12": by_cryptography, "": by_keytool}


def store_settings(stores: Stores, kind: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, location in (("keystore", stores.keys), ("truststore", stores.trusted)):
        settings |= {f"ssl.{name}.location": location, f"ssl.{name}.password": PASSWORD}
        if kind:
            settings[f"ssl.{name}.type"] = kind
    return {**settings, "ssl.key.password": PASSWORD}


@pytest.fixture(scope="module", params=["wirebroker", "apache"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    settings = {**AUTHORIZED, "listener.security.protocol.map": protocol_map(PROTOCOLS)}
    for listener, (kind, write_both) in zip(PROTOCOLS, WRITERS.items(), strict=True):
        stores = write_both(folder / listener, certificate(), "test authority")
        prefix = f"listener.name.{listener.lower()}."
        settings[f"{prefix}ssl.client.auth"] = "required"
        for name, value in store_settings(stores, kind).items():
            settings[prefix + name] = value
    broker: Guarded
    if request.param == "apache":
        broker = _Kafka(folder / "broker", settings, java_options=java_start.options())
    else:
        broker = _Wirebroker(folder / "broker", settings)
    with broker:
        yield broker


def written_by_java(broker: Guarded, listener: str, folder: Path, stores: Stores, kind: str) -> str:
    """Write five records with Java's client; return its error output."""
    file = folder / "client.properties"
    settings = {
        "bootstrap.servers": f"{HOST}:{broker.ports[listener]}",
        "security.protocol": "SSL",
        **store_settings(stores, kind),
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    address = f"{HOST}:{broker.ports[listener]}"
    status, printed = java.attempt(
        address,
        java.CONSOLE_PRODUCER,
        *("--topic", new_topic_name(), "--sync", "--command-config", str(file)),
        text="one\ntwo\n",
    )
    return printed if status or "rror" in printed else ""


@pytest.mark.parametrize("listener", PROTOCOLS)
@pytest.mark.parametrize("kind", WRITERS, ids=["by cryptography", "by keytool"])
def test_java_client_writes_with_keystore(
    guarded: Guarded, tmp_path: Path, listener: str, kind: str
) -> None:
    stores = WRITERS[kind](tmp_path / "own", client_certificate(), "test authority")
    assert written_by_java(guarded, listener, tmp_path, stores, kind) == ""


def test_java_client_with_foreign_key_is_rejected(guarded: Guarded, tmp_path: Path) -> None:
    stranger = by_cryptography(
        tmp_path / "own", client_certificate("eve", by="others"), "test authority"
    )
    assert "SSL" in written_by_java(guarded, "STORES", tmp_path, stranger, "PKCS12")


def test_java_client_with_foreign_truststore_rejects_broker(
    guarded: Guarded, tmp_path: Path
) -> None:
    trusting = by_cryptography(tmp_path / "own", client_certificate(), "others")
    assert "SSL" in written_by_java(guarded, "STOCK", tmp_path, trusting, "PKCS12")


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_librdkafka_writes_with_its_keystore(
    guarded: Guarded, tmp_path: Path, listener: str
) -> None:
    stores = by_cryptography(tmp_path / "own", client_certificate(), "test authority")
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": f"{HOST}:{guarded.ports[listener]}",
            "security.protocol": "SSL",
            "ssl.ca.location": write(tmp_path, "authority.pem", authority().certificate),
            "ssl.keystore.location": stores.keys,
            "ssl.keystore.password": PASSWORD,
        }
    )
    delivery_errors: list[confluent_kafka.KafkaError | None] = []
    producer.produce(
        new_topic_name(), b"one", on_delivery=lambda error, _: delivery_errors.append(error)
    )
    assert producer.flush(30) == 0
    assert delivery_errors == [None]
