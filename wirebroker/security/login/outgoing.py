"""The transport of outgoing connections: TCP or TLS, and a login if configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import SystemClock
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from wirebroker.config.security.outgoing import OutgoingSecurity
    from wirebroker.net.client.connection import Handshake
    from wirebroker.net.client.transport import Dialer


class ConnectionMethod(NamedTuple):
    """How peers are reached; the handshake runs on each new connection."""

    dialer: Dialer
    handshake: Handshake | None


def connection_method(security: OutgoingSecurity) -> ConnectionMethod:
    """Return how peers are reached; reads the files of keys and certificates.

    Raises:
        ConfigError: They cannot be used.
    """
    context = handshake = None
    if security.tls is not None:
        from wirebroker.security.tls.tls_contexts import client_context  # noqa: PLC0415 - if asked for

        context = client_context(security.tls)
    if security.login is not None:
        from wirebroker.security.login.login import SaslLogin  # noqa: PLC0415 - likewise

        handshake = SaslLogin(security.login, SystemClock())
    return ConnectionMethod(TcpDialer(context), handshake)
