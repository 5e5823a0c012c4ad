"""Keystores and truststores, converted to PEM for Python's ssl.

As in Kafka, PEM entries may be on one line, with other text between them. As in Java, the contents
of a file decide whether it is PKCS12 (needs `cryptography`) or JKS (needs `purejks`).

Source: Kafka's DefaultSslEngineFactory (KIP-651).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.config.rows.row import ConfigError
from wirebroker.config.sources.regular_file import read_regular

if TYPE_CHECKING:
    from wirebroker.config.security.tls import StoreSettings

_ENTRY: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----")
_CERTIFICATE: Final = "CERTIFICATE"
_KEYS: Final = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
_PLAIN_KEY: Final = "-----BEGIN PRIVATE KEY-----"
_LINE: Final = 64
_JKS_START: Final = b"\xfe\xed\xfe\xed"
_JCEKS_START: Final = b"\xce\xce\xce\xce"
# Ten times a system-wide list of authorities.
_MOST_BYTES: Final = 4 << 20
_EXTRA: Final = "reading PKCS12 needs the library cryptography: pip install 'wirebroker[tls]'"


class KeyMaterial(NamedTuple):
    """The contents of a store, as PEM; its repr reveals nothing.

    Attributes:
        certificates: The key's first; those of a truststore.
        password: The key's, if it is encrypted.
    """

    key: str
    certificates: str
    password: str

    def __repr__(self) -> str:
        return "KeyMaterial(…)"


def read_store(store: StoreSettings) -> KeyMaterial:
    """Read a store.

    Raises:
        ConfigError: It cannot be read, or has another format.
    """
    if not store.location:
        return _of_pem(store.certificates + "\n" + store.key, store, store.name)
    try:
        data = read_regular(store.location, _MOST_BYTES)
    except OSError as error:
        raise ConfigError(
            f"{store.name}.location: {store.location} cannot be read: {error.strerror}"
        ) from None
    if store.type == "PEM":
        return _of_pem(data.decode("utf-8", "replace"), store, store.location)
    if data.startswith(_JKS_START):
        return _of_jks(data, store)
    if data.startswith(_JCEKS_START):
        raise ConfigError(
            f"{store.name}.location: {store.location} is a JCEKS store, which cannot be read; "
            + _conversion(store)
        )
    return _of_pkcs12(data, store)


def _of_jks(data: bytes, store: StoreSettings) -> KeyMaterial:
    try:
        from wirebroker.security.tls.jks_store import pem_of_jks  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise ConfigError(
            f"{store.name}.location: {store.location} has Java's old JKS format, which needs the "
            f"library purejks: pip install 'wirebroker[jks]'; or {_conversion(store)}"
        ) from None
    is_keystore = store.name.endswith("keystore")
    key_password = store.key_password or store.password if is_keystore else None
    try:
        entries = pem_of_jks(data, store.password, key_password)
    except ValueError as error:
        passwords = "its password or ssl.key.password" if is_keystore else "its password"
        raise ConfigError(
            f"{store.name}.location: {store.location} is damaged, or {passwords} is wrong: {error}"
        ) from None
    certificates = entries.chain if is_keystore else entries.trusted
    if not certificates:
        raise ConfigError(f"{store.name}.location: {store.location} has no certificate")
    return KeyMaterial(entries.key, certificates, "")


def _conversion(store: StoreSettings) -> str:
    return (
        f"convert it and set {store.name}.type=PKCS12: keytool -importkeystore -srckeystore "
        f"{store.location} -destkeystore {store.location}.p12 -deststoretype pkcs12"
    )


def _of_pem(text: str, store: StoreSettings, source: str) -> KeyMaterial:
    keys: list[str] = []
    certificates: list[str] = []
    for kind, body in _ENTRY.findall(text):
        if kind == _CERTIFICATE:
            certificates.append(_entry(kind, body))
        elif kind in _KEYS:
            keys.append(_entry(kind, body))
    if not certificates:
        raise ConfigError(f"{store.name}: {source} has no certificate in PEM format")
    if store.key_password and keys and keys[0].startswith(_PLAIN_KEY):
        raise ConfigError(
            f"{store.name}: {source} has a key without a password: unset ssl.key.password"
        )
    return KeyMaterial(
        key=keys[0] if keys else "",
        certificates="".join(certificates),
        password=store.key_password,
    )


def _entry(kind: str, body: str) -> str:
    """Return an entry in lines, as OpenSSL requires."""
    data = "".join(body.split())
    lines = "\n".join(data[position : position + _LINE] for position in range(0, len(data), _LINE))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"


def _of_pkcs12(data: bytes, store: StoreSettings) -> KeyMaterial:
    try:
        from wirebroker.security.tls.pkcs12 import pem_of_pkcs12  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise ConfigError(f"{store.name}.location: {_EXTRA}, or use PEM") from None
    try:
        key, certificates = pem_of_pkcs12(data, store.password)
    except ValueError as error:
        raise ConfigError(
            f"{store.name}.location: {store.location} is not PKCS12, or {store.name}.password is "
            f"wrong: {error}"
        ) from None
    if not certificates:
        raise ConfigError(f"{store.name}.location: {store.location} has no certificate")
    return KeyMaterial(key, certificates, "")
