"""PKCS12 files of keytool and OpenSSL."""

from __future__ import annotations

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)


def pem_of_pkcs12(data: bytes, password: str) -> tuple[str, str]:
    """Return key and certificates as PEM, the key's own certificate first.

    Raises:
        ValueError: It is not PKCS12, or the password is wrong.
    """
    # An empty password differs from none; OpenSSL writes either.
    contents = pkcs12.load_pkcs12(data, password.encode() or None)
    key = ""
    if contents.key is not None:
        form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        key = contents.key.private_bytes(*form).decode("ascii")
    chain = [contents.cert, *contents.additional_certs]
    certificates = [
        certificate.certificate.public_bytes(Encoding.PEM).decode("ascii")
        for certificate in chain
        if certificate is not None
    ]
    return key, "".join(certificates)
