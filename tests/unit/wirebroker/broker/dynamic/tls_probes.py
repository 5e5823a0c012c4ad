"""Probes for TLS configs (test_dynamic_configs.py)."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from tests.support.security.tls_files import (
    authority,
    certificate,
    client_certificate,
    client_side,
    write,
)
from tests.support.tools.ports import free_port
from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import World, probe
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "listener.name.ssl.ssl."
FIRST, SECOND = certificate(), certificate(days=31)


async def open_listener(w: World, **options: str) -> int:
    """Add a TLS listener with a keystore file; return its port."""
    port = free_port()
    configs = {
        "keystore.type": "PEM",
        "keystore.location": write(w.path, "keys", FIRST),
        "truststore.type": "PEM",
        "truststore.location": write(w.path, "trusted", authority().certificate),
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    listeners = f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{port}"
    own = [(PREFIX + name, value) for name, value in configs.items() if value]
    assert await w.change(("listeners", listeners), *own) is ErrorCode.NONE
    return port


async def change(w: World, **options: str) -> None:
    own = [(PREFIX + name.replace("_", "."), value) for name, value in options.items()]
    assert await w.change(*own) is ErrorCode.NONE


async def shown(port: int, context: ssl.SSLContext) -> ssl.SSLObject:
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    ssl_object: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.transport.abort()
    return ssl_object


async def which(w: World, port: int) -> str:
    return await shown_name(w.path, port)


async def shown_name(folder: Path, port: int) -> str:
    engine = await shown(port, client_side(folder))
    certificate = engine.getpeercert(binary_form=True)
    assert certificate is not None
    return {_der(FIRST): "first", _der(SECOND): "second"}.get(certificate, "another")


def _der(pem: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(_parts(pem)[1])


def _parts(pem: str) -> tuple[str, str]:
    certificate_start = pem.index("-----BEGIN CERT")
    return pem[:certificate_start], pem[certificate_start:]


def _p12(folder: Path, pem: str, password: str) -> str:
    key, chain = _parts(pem)
    data = pkcs12.serialize_key_and_certificates(
        b"x",
        load_pem_private_key(key.encode(), None),  # type: ignore[arg-type]
        x509.load_pem_x509_certificate(chain.encode()),
        None,
        BestAvailableEncryption(password.encode()),
    )
    (folder / f"{password}.p12").write_bytes(data)
    return str(folder / f"{password}.p12")


@probe("ssl.keystore.location")
async def _same_path(w: World) -> None:
    """Setting the same path again reloads the file; open connections stay."""
    port = await open_listener(w)
    assert await which(w, port) == "first"
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_side(w.path), server_hostname="localhost"
    )
    location = write(w.path, "keys", SECOND)
    assert await which(w, port) == "first"
    await change(w, keystore_location=location)
    assert await which(w, port) == "second"
    # Unusable certificates are refused, as are those of another owner or for fewer hosts
    # (ssl.allow.dn.changes, ssl.allow.san.changes). The old certificate stays in use.
    for other in ("nothing", certificate("eve"), certificate(hosts=("localhost",))):
        write(w.path, "keys", other)
        refused = await w.change((PREFIX + "keystore.location", location))
        assert refused is ErrorCode.INVALID_REQUEST
        assert await which(w, port) == "second"
    nowhere = (PREFIX + "keystore.location", str(w.path / "nowhere"))
    assert await w.change(nowhere) is ErrorCode.INVALID_REQUEST
    assert not reader.at_eof()
    writer.transport.abort()


@probe("ssl.keystore.type", "ssl.keystore.password")
async def _type(w: World) -> None:
    port = await open_listener(w)
    location = _p12(w.path, SECOND, "one")
    await change(w, keystore_type="PKCS12", keystore_location=location, keystore_password="one")
    assert await which(w, port) == "second"
    location = _p12(w.path, FIRST, "two")
    await change(w, keystore_location=location, keystore_password="two")
    assert await which(w, port) == "first"


@probe("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password")
async def _inline(w: World) -> None:
    key, chain = _parts(FIRST)
    inline = {"keystore_key": key, "keystore_certificate_chain": chain}
    port = await open_listener(w, keystore_location="", **inline)
    assert await which(w, port) == "first"
    key, chain = _parts(SECOND)
    secret = load_pem_private_key(key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"s")
    )
    await change(
        w, keystore_key=secret.decode(), keystore_certificate_chain=chain, key_password="s"
    )
    assert await which(w, port) == "second"


async def _is_let_in(w: World, port: int, own: str) -> bool:
    context = client_side(w.path, own)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # the handshake reports the failure
    try:
        await shown(port, context)
    except ssl.SSLError:
        return False
    return True


@probe("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password")
async def _trust(w: World) -> None:
    port = await open_listener(w, client_auth="required")
    eve = client_certificate("eve", by="others")
    assert not await _is_let_in(w, port, eve)
    other_authority = x509.load_pem_x509_certificate(authority("others").certificate.encode())
    data = pkcs12.serialize_key_and_certificates(
        b"x", None, None, [other_authority], BestAvailableEncryption(b"s")
    )
    (w.path / "others.p12").write_bytes(data)
    location = str(w.path / "others.p12")
    await change(w, truststore_type="PKCS12", truststore_location=location, truststore_password="s")
    assert await _is_let_in(w, port, eve)


@probe("ssl.truststore.certificates")
async def _trusted_inline(w: World) -> None:
    trusted_certificate = authority().certificate
    port = await open_listener(
        w,
        client_auth="required",
        truststore_location="",
        truststore_certificates=trusted_certificate,
    )
    eve = client_certificate("eve", by="others")
    assert not await _is_let_in(w, port, eve)
    await change(w, truststore_certificates=authority("others").certificate)
    assert await _is_let_in(w, port, eve)


@probe("ssl.client.auth")
async def _client_auth(w: World) -> None:
    port = await open_listener(w)
    context = client_side(w.path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    await shown(port, context)
    await change(w, client_auth="required")
    try:
        await shown(port, context)
    except (ssl.SSLError, ConnectionError):
        return
    raise AssertionError("no certificate is requested")


@probe("ssl.enabled.protocols")
async def _versions(w: World) -> None:
    port = await open_listener(w)
    for version in ("TLSv1.3", "TLSv1.2"):
        await change(w, enabled_protocols=version)
        assert (await shown(port, client_side(w.path))).version() == version


@probe("ssl.cipher.suites")
async def _suites(w: World) -> None:
    port = await open_listener(w)
    for name, suite in (
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ):
        await change(w, cipher_suites=name)
        cipher = (await shown(port, client_side(w.path))).cipher()
        assert cipher is not None
        assert cipher[0] == suite


@probe("ssl.endpoint.identification.algorithm")
async def _host_names(w: World) -> None:
    """It configures the broker's outgoing connections, of which there are none here."""
    await w.set(("ssl.endpoint.identification.algorithm", ""))
    assert w.broker.config.str("ssl.endpoint.identification.algorithm") == ""
