"""Keystores and truststores in their forms; what cannot be used is one line without a secret."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from tests.support.tls_files import authority, certificate, write
from wirebroker.config import ConfigError
from wirebroker.config.tls import StoreSettings, TlsSettings
from wirebroker.security.key_stores import read_store
from wirebroker.security.tls_contexts import client_context, server_side

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "store-secret"


def parts() -> tuple[str, str]:
    """Return key and certificate."""
    pem = certificate()
    place = pem.index("-----BEGIN CERTIFICATE")
    return pem[:place], pem[place:]


def encrypted_key() -> str:
    key = load_pem_private_key(parts()[0].encode(), None)
    form = (Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode()))
    return key.private_bytes(*form).decode()


def p12(folder: Path, password: str = PASSWORD) -> str:
    key, chain = parts()
    data = pkcs12.serialize_key_and_certificates(
        b"broker",
        load_pem_private_key(key.encode(), None),  # type: ignore[arg-type]
        x509.load_pem_x509_certificate(chain.encode()),
        [x509.load_pem_x509_certificate(authority().certificate.encode())],
        BestAvailableEncryption(password.encode()) if password else NoEncryption(),
    )
    path = folder / "broker.p12"
    path.write_bytes(data)
    return str(path)


def is_used(keystore: StoreSettings, truststore: StoreSettings | None = None) -> bool:
    """Shake hands with ourselves."""
    trusted = truststore or StoreSettings(certificates=authority().certificate)
    settings = TlsSettings(keystore=keystore, truststore=trusted, client_auth="required")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_side(settings).context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context(settings).wrap_bio(to_client, to_server, server_hostname="localhost")
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return server.version() == "TLSv1.3" and server.getpeercert() != {}


def test_pem_in_a_file(tmp_path: Path) -> None:
    location = write(tmp_path, "broker.pem", "some words\n" + certificate())
    assert is_used(StoreSettings(location=location))


def test_pem_as_it_is_also_on_one_line() -> None:
    key, chain = parts()
    assert is_used(StoreSettings(key=key, certificates=chain))
    one_line = StoreSettings(key=key.replace("\n", " "), certificates=chain.replace("\n", " "))
    assert is_used(one_line)


def test_a_key_with_a_password() -> None:
    chain = parts()[1]
    assert is_used(StoreSettings(key=encrypted_key(), certificates=chain, key_password=PASSWORD))
    with pytest.raises(ConfigError, match=r"is ssl\.key\.password right") as refused:
        is_used(StoreSettings(key=encrypted_key(), certificates=chain, key_password="other-secret"))
    assert "secret" not in str(refused.value).replace("ssl.key.password", "")


def test_a_password_of_a_key_that_has_none_is_refused() -> None:
    key, chain = parts()
    with pytest.raises(ConfigError, match=r"unset ssl\.key\.password"):
        is_used(StoreSettings(key=key, certificates=chain, key_password=PASSWORD))


@pytest.mark.parametrize("password", [PASSWORD, ""])
def test_pkcs12(tmp_path: Path, password: str) -> None:
    store = StoreSettings(type="PKCS12", location=p12(tmp_path, password), password=password)
    assert is_used(store)
    # Java's default type, whose files are mostly PKCS12 nowadays.
    assert is_used(StoreSettings(type="JKS", location=store.location, password=password))


def test_pkcs12_with_another_password(tmp_path: Path) -> None:
    store = StoreSettings(type="PKCS12", location=p12(tmp_path), password="other-secret")
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.password is another") as refused:
        is_used(store)
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(store)


@pytest.mark.java
def test_what_keytool_writes(tmp_path: Path) -> None:
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("there is no keytool")
    trusted = write(tmp_path, "authority.pem", authority().certificate)
    location = str(tmp_path / "trusted.p12")
    command = [keytool, "-importcert", "-noprompt", "-alias", "authority", "-file", trusted]
    command += ["-keystore", location, "-storepass", PASSWORD]
    subprocess.run(command, check=True, capture_output=True)
    truststore = StoreSettings(
        type="JKS", location=location, password=PASSWORD, name="ssl.truststore"
    )
    assert is_used(StoreSettings(location=write(tmp_path, "b.pem", certificate())), truststore)


@pytest.mark.parametrize(
    ("text", "store", "words"),
    [
        (b"\xfe\xed\xfe\xed\0\0", {"type": "JKS"}, "keytool -importkeystore"),
        (b"nothing", {"type": "PKCS12"}, "is no PKCS12"),
        (b"nothing", {"type": "PEM"}, "has no certificate in the form of PEM"),
        (authority().certificate.encode(), {"type": "PEM"}, "there is no private key"),
        (bytes((4 << 20) + 1), {"type": "PEM"}, "longer than"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, text: bytes, store, words: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=words) as refused:
        is_used(StoreSettings(location=str(path), **store))
    assert "\n" not in str(refused.value)


def test_a_certificate_of_another_key_is_refused() -> None:
    other = certificate("other")
    store = StoreSettings(key=parts()[0], certificates=other[other.index("-----BEGIN CERT") :])
    with pytest.raises(ConfigError, match="the first certificate the key's"):
        is_used(store)


def test_what_was_read_is_not_shown() -> None:
    key, chain = parts()
    assert repr(read_store(StoreSettings(key=key, certificates=chain))) == "KeyMaterial(…)"
