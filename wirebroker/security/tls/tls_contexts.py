"""SSL contexts from settings, for listeners and for outgoing connections.

Python reads keys only from files: they are passed in a memory file (memfd), or else a temporary
one.

Source: Kafka's DefaultSslEngineFactory.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.config.rows.row import ConfigError
from wirebroker.security.tls.key_stores import read_store

if TYPE_CHECKING:
    from collections.abc import Generator

    from wirebroker.config.security.tls import StoreSettings, TlsSettings

_VERSIONS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_END: Final = "-----END CERTIFICATE-----"
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class ServerSide(NamedTuple):
    """A listener's context and its certificate, DER."""

    context: ssl.SSLContext
    certificate: bytes


def server_side(settings: TlsSettings) -> ServerSide:
    """Return a listener's TLS; reads files.

    Raises:
        ConfigError: Its keys or certificates cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _use_versions(context, settings)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    certificate = _use_key(context, settings.keystore)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    # An unusable truststore is refused even if clients need no certificate.
    if settings.client_auth != "none" or settings.truststore.is_there:
        _trust(context, settings.truststore, ssl.Purpose.CLIENT_AUTH)
    return ServerSide(context, certificate)


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of outgoing connections; reads files.

    Raises:
        ConfigError: Its keys or certificates cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _use_versions(context, settings)
    context.check_hostname = settings.checks_host
    context.verify_mode = ssl.CERT_REQUIRED
    if settings.keystore.is_there:
        _use_key(context, settings.keystore)
    _trust(context, settings.truststore, ssl.Purpose.SERVER_AUTH)
    return context


def _use_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = [_VERSIONS[version] for version in settings.versions]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if settings.cipher_suites:
        context.set_ciphers(":".join(settings.cipher_suites))


def _use_key(context: ssl.SSLContext, store: StoreSettings) -> bytes:
    material = read_store(store)
    if not material.key:
        raise ConfigError(f"{store.name}: it has no private key")
    # Without a password callback OpenSSL would prompt on the terminal.
    password = material.password.encode()
    with _as_file(material.key + material.certificates) as path:
        try:
            context.load_cert_chain(path, password=lambda: password)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{store.name}: the key cannot be used: {_reason(error)} (is ssl.key.password "
                "right, and does the first certificate belong to the key?)"
            ) from None
    end = material.certificates.index(_END) + len(_END)
    return ssl.PEM_cert_to_DER_cert(material.certificates[:end])


def _trust(context: ssl.SSLContext, store: StoreSettings, purpose: ssl.Purpose) -> None:
    if not store.is_there:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata=read_store(store).certificates)
    except ssl.SSLError as error:
        raise ConfigError(
            f"{store.name}: its certificates cannot be used: {_reason(error)}"
        ) from None
    # As in Java, all certificates of the store are trusted, not only self-signed ones.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


@contextlib.contextmanager
def _as_file(text: str) -> Generator[str]:
    data = text.encode("ascii")
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        descriptor = os.memfd_create("key")
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "key.pem")
        path.touch(0o600)
        path.write_bytes(data)
        yield str(path)


def _reason(error: ssl.SSLError) -> str:
    return str(error.reason or error).lower().replace("_", " ")
