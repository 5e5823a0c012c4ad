"""Keystores and truststores in their formats; errors are one line without a secret."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import jks
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

from tests.support.security.tls_files import authority, certificate, write
from wirebroker.config import ConfigError
from wirebroker.config.security.tls import StoreSettings, TlsSettings
from wirebroker.security.tls.key_stores import read_store
from wirebroker.security.tls.tls_contexts import client_context, server_side

PASSWORD = "store-secret"


def parts() -> tuple[str, str]:
    pem = certificate()
    certificate_start = pem.index("-----BEGIN CERTIFICATE")
    return pem[:certificate_start], pem[certificate_start:]


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


def test_pem_inline_also_on_one_line() -> None:
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


def test_password_for_an_unencrypted_key_is_refused() -> None:
    key, chain = parts()
    with pytest.raises(ConfigError, match=r"unset ssl\.key\.password"):
        is_used(StoreSettings(key=key, certificates=chain, key_password=PASSWORD))


@pytest.mark.parametrize("password", [PASSWORD, ""])
def test_pkcs12(tmp_path: Path, password: str) -> None:
    store = StoreSettings(type="PKCS12", location=p12(tmp_path, password), password=password)
    assert is_used(store)
    # Java's default type, whose files are mostly PKCS12 nowadays.
    assert is_used(StoreSettings(type="JKS", location=store.location, password=password))


def test_pkcs12_with_a_separate_key_password(tmp_path: Path) -> None:
    store = StoreSettings(type="PKCS12", location=p12(tmp_path), password="other-secret")
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.password is wrong") as refused:
        is_used(store)
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(store)


KEY_PASSWORD = "key-secret"


def old_form(folder: Path, key_password: str = KEY_PASSWORD) -> str:
    """Write a JKS store with a key and a trusted certificate; return its path."""
    key, chain = parts()
    der = load_pem_private_key(key.encode(), None).private_bytes(
        Encoding.DER, PrivateFormat.PKCS8, NoEncryption()
    )
    own = ssl.PEM_cert_to_DER_cert(chain)
    entry = jks.PrivateKeyEntry.new("broker", [own], der, "pkcs8")
    entry.encrypt(key_password)
    trusted = jks.TrustedCertEntry.new(
        "authority", ssl.PEM_cert_to_DER_cert(authority().certificate)
    )
    path = folder / "broker.jks"
    path.write_bytes(jks.KeyStore.new("jks", [entry, trusted]).saves(PASSWORD))
    return str(path)


@pytest.mark.parametrize("type_", ["JKS", "PKCS12"])
def test_jks(tmp_path: Path, type_: str) -> None:
    location = old_form(tmp_path)
    keystore = StoreSettings(
        type=type_, location=location, password=PASSWORD, key_password=KEY_PASSWORD
    )
    assert read_store(keystore).certificates.count("BEGIN CERTIFICATE") == 1
    for password in (PASSWORD, ""):  # without a password Java does not check the file
        truststore = StoreSettings(
            type=type_,
            location=location,
            password=password,
            name="ssl.truststore",
        )
        assert is_used(keystore, truststore)
        assert not read_store(truststore).key
    assert is_used(
        StoreSettings(type=type_, location=old_form(tmp_path, PASSWORD), password=PASSWORD)
    )


@pytest.mark.parametrize(
    "wrong", [{"password": "other-secret"}, {"key_password": "other-secret"}, {"key_password": ""}]
)
def test_jks_with_a_separate_key_password(tmp_path: Path, wrong: dict[str, str]) -> None:
    location = old_form(tmp_path)
    passwords = {"password": PASSWORD, "key_password": KEY_PASSWORD, **wrong}
    with pytest.raises(
        ConfigError, match=r"its password or ssl\.key\.password is wrong"
    ) as refused:
        read_store(StoreSettings(type="JKS", location=location, **passwords))
    assert "secret" not in str(refused.value)


def test_jks_truststore_has_no_key_password(tmp_path: Path) -> None:
    store = StoreSettings(
        type="JKS", location=old_form(tmp_path), password="other-secret", name="ssl.truststore"
    )
    with pytest.raises(ConfigError, match="is damaged, or its password is wrong"):
        read_store(store)


@pytest.mark.parametrize("name", ["ssl.keystore", "ssl.truststore"])
def test_damaged_jks_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path = Path(old_form(tmp_path))
    data = path.read_bytes()
    store = StoreSettings(
        type="JKS", location=str(path), password=PASSWORD, key_password=KEY_PASSWORD, name=name
    )
    for position in range(4, len(data), 7):
        for damaged in (data[:position], data[:position] + b"\xff" + data[position + 1 :]):
            if damaged == data:
                continue
            path.write_bytes(damaged)
            with pytest.raises(ConfigError) as refused:
                read_store(store)
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["ssl.keystore", "ssl.truststore"])
def test_damage_without_a_checksum_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path = Path(old_form(tmp_path))
    data = path.read_bytes()
    store = StoreSettings(
        type="JKS", location=str(path), password="", key_password=KEY_PASSWORD, name=name
    )
    refusals = []
    for position in range(4, len(data), 3):
        for damaged in (data[:position], data[:position] + b"\xff" + data[position + 1 :]):
            path.write_bytes(damaged)
            try:
                read_store(store)
            except ConfigError as error:
                refusals.append(str(error))
    assert len(refusals) > len(data) // 6  # at least the truncated ones
    assert not any("\n" in refusal for refusal in refusals)


def test_jks_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "wirebroker.security.tls.jks_store", raising=False)
    monkeypatch.setitem(sys.modules, "jks", None)
    store = StoreSettings(type="JKS", location=old_form(tmp_path), password=PASSWORD)
    with pytest.raises(ConfigError, match=r"pip install 'wirebroker\[jks\]'; or convert it"):
        read_store(store)


@pytest.fixture
def keytool() -> str:
    path = shutil.which("keytool")
    if path is None:
        pytest.skip("there is no keytool")
    return path


@pytest.mark.java
@pytest.mark.parametrize("algorithm", ["RSA", "EC"])
def test_jks_written_by_keytool_is_read(tmp_path: Path, keytool: str, algorithm: str) -> None:
    location = str(tmp_path / "broker.jks")
    command = [keytool, "-genkeypair", "-alias", "broker", "-keyalg", algorithm]
    command += ["-dname", "CN=localhost", "-ext", "san=dns:localhost", "-storetype", "JKS"]
    command += ["-keystore", location, "-storepass", PASSWORD, "-keypass", KEY_PASSWORD]
    subprocess.run(command, check=True, capture_output=True)
    keystore = StoreSettings(
        type="JKS", location=location, password=PASSWORD, key_password=KEY_PASSWORD
    )
    trusted = StoreSettings(certificates=read_store(keystore).certificates)
    assert is_used(keystore, trusted)


@pytest.mark.java
def test_pkcs12_written_by_keytool_is_read(tmp_path: Path, keytool: str) -> None:
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
        (b"\xfe\xed\xfe\xed\0\0", {"type": "JKS"}, "is damaged, or its password"),
        (b"\xce\xce\xce\xce\0\0", {"type": "JKS"}, "keytool -importkeystore"),
        (b"nothing", {"type": "PKCS12"}, "is not PKCS12"),
        (b"nothing", {"type": "PEM"}, "has no certificate in PEM format"),
        (authority().certificate.encode(), {"type": "PEM"}, "it has no private key"),
        (bytes((4 << 20) + 1), {"type": "PEM"}, "longer than"),
    ],
)
def test_unusable_store_is_refused(tmp_path: Path, text: bytes, store, words: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=words) as refused:
        is_used(StoreSettings(location=str(path), **store))
    assert "\n" not in str(refused.value)


def test_certificate_of_another_key_is_refused() -> None:
    other = certificate("other")
    store = StoreSettings(key=parts()[0], certificates=other[other.index("-----BEGIN CERT") :])
    with pytest.raises(ConfigError, match="the first certificate belong to the key"):
        is_used(store)


def test_key_material_is_not_shown() -> None:
    key, chain = parts()
    assert repr(read_store(StoreSettings(key=key, certificates=chain))) == "KeyMaterial(…)"
