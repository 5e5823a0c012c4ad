"""Keystores and truststores in Java's old format, JKS; the only import of purejks.

purejks is a maintained fork of pyjks with the same module, `jks`.

Source: sun.security.provider.JavaKeyStore.
"""

from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING, NamedTuple

import jks
from jks.util import KeystoreException
from pyasn1.error import PyAsn1Error

if TYPE_CHECKING:
    from collections.abc import Iterable


class JksEntries(NamedTuple):
    """The contents of a store, as PEM.

    Attributes:
        key: The first private key; empty without one or without a key password.
        chain: The certificates of that key, its own first.
        trusted: Trusted entries, and the own certificate of each key.
    """

    key: str
    chain: str
    trusted: str

    def __repr__(self) -> str:
        return "JksEntries(…)"


def pem_of_jks(data: bytes, password: str, key_password: str | None) -> JksEntries:
    """Return the entries of a store.

    Args:
        data: The file.
        password: Empty to skip the integrity check.
        key_password: None for a truststore.

    Raises:
        ValueError: The file is damaged, or a password is wrong.
    """
    try:
        store = jks.KeyStore.loads(data, password or None, try_decrypt_keys=False)
        keys = list(store.private_keys.values())
        trusted = [entry.cert for entry in store.certs.values()]
        trusted += [key.cert_chain[0][1] for key in keys if key.cert_chain]
        key, chain = "", []
        if keys:
            chain = [certificate for _, certificate in keys[0].cert_chain]
            if key_password is not None:
                keys[0].decrypt(key_password)
                key = _key(keys[0].pkey_pkcs8)
    except KeystoreException as error:
        raise ValueError(str(error)) from None
    except PyAsn1Error:  # its text contains bytes of the entry
        raise ValueError("a key is damaged") from None
    return JksEntries(key, _certificates(chain), _certificates(trusted))


def _certificates(der_certificates: Iterable[bytes]) -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, der_certificates))


def _key(data: bytes) -> str:
    text = base64.encodebytes(data).decode("ascii")
    return f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----\n"
