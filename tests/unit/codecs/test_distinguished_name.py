"""Certificate owners are named as by Java 17."""

from __future__ import annotations

import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from tests.support.security.tls_files import certificate, client_certificate
from wirebroker.codecs.distinguished_name import (
    alternative_names_of,
    fault_of_client,
    subject_of,
)
from wirebroker.codecs.errors import MalformedFrameError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = ec.generate_private_key(ec.SECP256R1())


def made(
    *attributes: tuple[x509.ObjectIdentifier, str],
    extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
) -> bytes:
    """Return a certificate with extensions, critical or not."""
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in attributes])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(KEY.public_key()).serial_number(7)
    builder = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, is_critical)
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


def of(*attributes: tuple[x509.ObjectIdentifier, str]) -> str:
    return subject_of(made(*attributes))


def test_names_are_written_as_java_writes_them() -> None:
    organization = 'Example, Inc. "x" <y> #1; a=b+c\\d'
    assert of(
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.ORGANIZATION_NAME, organization),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, " lead trail "),
        (NameOID.COMMON_NAME, "älice"),
    ) == (
        'CN=älice,OU=\\ lead trail\\ ,O=Example\\, Inc. \\"x\\" \\<y\\> \\#1\\; a\\=b\\+c\\\\d,C=DE'
    )


def test_types_without_a_keyword_are_numbers() -> None:
    assert (
        of(
            (NameOID.DOMAIN_COMPONENT, "org"),
            (NameOID.USER_ID, "u1"),
            (NameOID.EMAIL_ADDRESS, "a@b.c"),
            (NameOID.SERIAL_NUMBER, "123"),
            (NameOID.STATE_OR_PROVINCE_NAME, "S"),
        )
        == "ST=S,2.5.4.5=#1303313233,1.2.840.113549.1.9.1=#16056140622e63,UID=u1,DC=org"
    )


def test_name_of_spaces_is_escaped() -> None:
    assert of((NameOID.COMMON_NAME, " ")) == "CN=\\ "


def _der() -> bytes:
    pem = client_certificate("alice")
    return ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :])


@given(st.integers(0, 400), st.integers(0, 255))
def test_damaged_der_gives_a_name_or_is_refused(place: int, byte: int) -> None:
    data = bytearray(_der())
    data[place % len(data)] = byte
    with contextlib.suppress(MalformedFrameError):
        assert isinstance(subject_of(bytes(data)), str)


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x84", b"\x30\x84\xff\xff\xff\xff", b"\x02\0"]
)
def test_invalid_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrameError):
        subject_of(data)
    assert subject_of(_der()) == "CN=alice"


def test_different_host_names_are_not_equal() -> None:
    def names(*hosts: str) -> frozenset[bytes]:
        pem = certificate(hosts=hosts)
        return alternative_names_of(ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :]))

    assert names("a.test", "127.0.0.1") > names("a.test")
    assert names("a.test") != names("b.test")
    assert len(names("a.test", "::1")) == 2
    assert names() == frozenset()


ALICE = ((NameOID.COMMON_NAME, "alice"),)
HOST = x509.SubjectAlternativeName([x509.DNSName("alice.example.org")])


def uses(*, signs: bool, agrees: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs,
        key_agreement=agrees,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def test_certificate_accepted_by_java_for_clients_has_no_error() -> None:
    for extensions in (
        [],
        [(uses(signs=True, agrees=False), True)],
        [(uses(signs=True, agrees=True), False), (HOST, False)],
    ):
        assert fault_of_client(made(*ALICE, extensions=extensions)) is None
    assert fault_of_client(made(extensions=[(HOST, True)])) is None


def test_key_without_signing_usage_is_not_a_client_key() -> None:
    agrees = made(*ALICE, extensions=[(uses(signs=False, agrees=True), True)])
    assert fault_of_client(agrees) == "its key may not be used for digital signatures"


def test_certificate_without_any_name_is_refused() -> None:
    for extensions in ([], [(HOST, False)]):
        fault = fault_of_client(made(extensions=extensions))
        assert fault == "it has neither a subject nor critical alternative names"
