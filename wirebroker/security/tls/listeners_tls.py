"""TLS on all listeners of a loop: a context for each, and the users of clients' certificates.

Changed settings and files apply to new connections; unusable ones are logged, not applied.

Source: Kafka's SslFactory, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.distinguished_name import (
    alternative_names_of,
    fault_of_client,
    subject_of,
)
from wirebroker.codecs.envelope import Principal
from wirebroker.config.rows.row import ConfigError, StartError
from wirebroker.config.security.principal_rules import principal_name
from wirebroker.net.tls.tls_error import TlsFailedError
from wirebroker.net.tls.tls_transport import TlsTransport
from wirebroker.net.tls.tls_turns import TlsTurns
from wirebroker.security.tls.tls_contexts import ServerSide, server_side

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.config.security.tls import TlsSettings
    from wirebroker.net.sockets.transport import ConnectionTransport
    from wirebroker.request.session import Session

logger = logging.getLogger("wirebroker.security")


class ListenersTls:
    """TLS of all listeners."""

    __slots__ = ("_deadline_s", "_sides", "_turns")

    def __init__(self, loop: asyncio.AbstractEventLoop, *, deadline_s: float) -> None:
        """Create it without listeners; a handshake may take `deadline_s`."""
        self._deadline_s = deadline_s
        self._turns = TlsTurns(loop)
        # None if the keys cannot be used.
        self._sides: dict[str, tuple[ListenerConfig, ServerSide | None]] = {}

    async def open(self, listeners: Iterable[ListenerConfig]) -> None:
        """Set the first listeners.

        Raises:
            StartError: Keys or certificates of one cannot be used.
        """
        for listener in listeners:
            if listener.tls is not None:
                try:
                    await self._read(listener, listener.tls)
                except ConfigError as error:
                    raise StartError(
                        f"{listener.name} cannot be opened: {error}",
                        "fix its key and certificates (docs/security.md)",
                    ) from error

    async def use_listeners(self, listeners: Iterable[ListenerConfig]) -> None:
        """Use these listeners, with the current contents of their files, for new connections."""
        by_name = {listener.name: listener for listener in listeners}
        for name in self._sides.keys() - by_name.keys():
            del self._sides[name]
        for listener in by_name.values():
            if listener.tls is None:
                continue
            try:
                await self._read(listener, listener.tls)
            except ConfigError as error:
                _, side = self._sides.get(listener.name, (listener, None))
                self._sides[listener.name] = (listener, side)
                effect = (
                    "refuses all connections" if side is None else "keeps its current certificate"
                )
                logger.error("%s %s: %s", listener.name, effect, error)  # noqa: TRY400 - no trace

    async def try_listeners(self, listeners: Iterable[ListenerConfig]) -> None:
        """Read the files without using them.

        Raises:
            ConfigError: Some cannot be used.
        """
        for listener in listeners:
            if listener.tls is not None:
                await self._side_of(listener, listener.tls)

    async def _read(self, listener: ListenerConfig, settings: TlsSettings) -> None:
        self._sides[listener.name] = (listener, await self._side_of(listener, settings))

    async def _side_of(self, listener: ListenerConfig, settings: TlsSettings) -> ServerSide:
        side = await in_thread(Work.LISTENERS, server_side, settings)
        _, before = self._sides.get(listener.name, (listener, None))
        if before is not None:
            _check_replacement(before.certificate, side.certificate, settings)
        return side

    def has_to_wait(self, listener_name: str, go_on: Callable[[], None]) -> bool:
        """Return whether a listener must not accept now; if so, call back when it may."""
        if listener_name not in self._sides or not self._turns.is_full:
            return False
        self._turns.when_there_is_room(go_on)
        return True

    def secure(self, transport: ConnectionTransport, session: Session) -> ConnectionTransport:
        """Return the transport of a new connection: TLS, if its listener uses that.

        Raises:
            TlsFailedError: The listener has no usable keys.
        """
        entry = self._sides.get(session.listener_name)
        if entry is None:
            return transport
        listener, side = entry
        if side is None or listener.tls is None:
            raise TlsFailedError(f"{listener.name} has no keys")
        return TlsTransport(
            transport,
            side.context,
            self._turns,
            peer=session.peer,
            listener_name=session.listener_name,
            deadline_s=self._deadline_s,
            on_secured=_check if listener.sasl else partial(_know, listener.tls, session),
        )


def _check_replacement(before: bytes, after: bytes, settings: TlsSettings) -> None:
    """Refuse a new certificate with another subject or fewer hosts (Kafka's SslFactory)."""
    if not settings.may_change_subject and subject_of(before) != subject_of(after):
        raise ConfigError(
            f"the new certificate is for {subject_of(after)}, the old one for {subject_of(before)};"
            " ssl.allow.dn.changes is false"
        )
    missing_names = alternative_names_of(before) - alternative_names_of(after)
    if missing_names and not settings.may_change_names:
        raise ConfigError(
            f"the new certificate lacks {len(missing_names)} of the old one's hosts, and "
            "ssl.allow.san.changes is false"
        )


def _check(certificate: bytes | None) -> None:
    """Refuse client certificates that Java refuses."""
    fault = None if certificate is None else fault_of_client(certificate)
    if fault is not None:
        raise TlsFailedError(f"its certificate is refused: {fault}")


def _know(settings: TlsSettings, session: Session, certificate: bytes | None) -> None:
    _check(certificate)
    if certificate is None:
        return
    subject = subject_of(certificate)
    name = principal_name(settings.rules, subject)
    if name is None:
        raise TlsFailedError(f"no rule of ssl.principal.mapping.rules matches {subject[:256]!r}")
    session.principal = Principal("User", name)
