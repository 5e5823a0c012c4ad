"""A certificate authority for development and tests; imports cryptography, as does pkcs12.py.

    authority = Authority.make("wirebroker", now)
    pem = authority.issue("broker", now, hosts=["localhost", "127.0.0.1"])   # key and certificate

Keys use P-256: a handshake costs a tenth of RSA's.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

DAYS: Final = 365
# Clocks differ between machines.
_BEFORE: Final = timedelta(hours=1)
_USES: Final = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


class Authority:
    """Signs certificates; its own `certificate`, as PEM, is for truststores."""

    __slots__ = ("_key", "_name", "certificate")

    def __init__(self, key: ec.EllipticCurvePrivateKey, name: x509.Name, certificate: str) -> None:
        self._key = key
        self._name = name
        self.certificate = certificate

    @classmethod
    def make(cls, common_name: str, now: datetime, *, days: int = DAYS) -> Authority:
        """Return a new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        builder = _builder(name, name, key, now, days).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        key_usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        signed = builder.add_extension(key_usage, critical=True).sign(key, SHA256())
        return cls(key, name, _pem(signed))

    @classmethod
    def load(cls, certificate: str, key: str) -> Authority:
        """Load an authority from PEM.

        Raises:
            ValueError: They are invalid.
        """
        private_key = load_pem_private_key(key.encode(), None)
        if not isinstance(private_key, ec.EllipticCurvePrivateKey):
            raise ValueError("the CA's key is not an elliptic curve key")  # noqa: TRY004
        name = x509.load_pem_x509_certificate(certificate.encode()).subject
        return cls(private_key, name, certificate)

    @property
    def key(self) -> str:
        """The private key, as PEM."""
        return _key_pem(self._key)

    def issue(
        self, common_name: str, now: datetime, *, hosts: Sequence[str] = (), days: int = DAYS
    ) -> str:
        """Return a new key and its certificate, in one PEM.

        Args:
            common_name: The subject; brokers see `User:CN=<name>`.
            now: Start of the validity, less an hour.
            hosts: Host names and addresses; empty for a client.
            days: Negative if expired.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name), self._name, key, now, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(_USES), critical=False)
        if hosts:
            names = x509.SubjectAlternativeName(_general_names(hosts))
            builder = builder.add_extension(names, critical=False)
        return _key_pem(key) + _pem(builder.sign(self._key, SHA256()))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    end = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - _BEFORE)
        .not_valid_after(end)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key.private_bytes(*form).decode("ascii")
