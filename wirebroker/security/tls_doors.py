"""TLS on all listeners of a loop: a context for each, and who a client's certificate says it is.

    doors = TlsDoors(loop, deadline_s=30)
    await doors.use_listeners(listeners)        # reads keys and certificates, in a thread
    transport = doors.secure(transport, session)

Settings that change, and files that are named again, count from the next connection on; those that
are open stay. What cannot be used then is said in the log, and what was there goes on.

Source: Kafka's SslFactory, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from wirebroker.codecs.distinguished_name import subject_of
from wirebroker.codecs.envelope import Principal
from wirebroker.config.principal_rules import principal_name
from wirebroker.config.row import ConfigError, StartError
from wirebroker.net.tls_transport import TlsFailedError, TlsTransport, TlsTurns
from wirebroker.security.tls_contexts import server_context
from wirebroker.threads import Work, in_thread

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Iterable

    from wirebroker.config.listeners import ListenerConfig
    from wirebroker.config.tls import TlsSettings
    from wirebroker.net.transport import ConnectionTransport
    from wirebroker.session import Session

logger = logging.getLogger("wirebroker.security")


class TlsDoors:
    """How connections of all listeners are spoken to."""

    __slots__ = ("_contexts", "_deadline_s", "_turns")

    def __init__(self, loop: asyncio.AbstractEventLoop, *, deadline_s: float) -> None:
        """Begin without listeners; a handshake may take `deadline_s`."""
        self._deadline_s = deadline_s
        self._turns = TlsTurns(loop)
        # None: its keys can't be used.
        self._contexts: dict[str, tuple[ListenerConfig, ssl.SSLContext | None]] = {}

    async def open(self, listeners: Iterable[ListenerConfig]) -> None:
        """Take the listeners of the start.

        Raises:
            StartError: Keys or certificates of one can't be used.
        """
        for each in listeners:
            if each.tls is not None:
                try:
                    await self._read(each, each.tls)
                except ConfigError as error:
                    raise StartError(
                        f"{each.name} cannot be opened: {error}",
                        "mend its key and certificates (docs/security.md)",
                    ) from error

    async def use_listeners(self, listeners: Iterable[ListenerConfig]) -> None:
        """Go by these, and by what stands in their files now, from the next connection on."""
        found = {each.name: each for each in listeners}
        for name in self._contexts.keys() - found.keys():
            del self._contexts[name]
        for each in found.values():
            if each.tls is None:
                continue
            try:
                await self._read(each, each.tls)
            except ConfigError as error:
                _, context = self._contexts.get(each.name, (each, None))
                self._contexts[each.name] = (each, context)
                what = "serves nobody" if context is None else "keeps its keys"
                logger.error("%s %s: %s", each.name, what, error)  # noqa: TRY400 - no trace

    async def _read(self, listener: ListenerConfig, settings: TlsSettings) -> None:
        context = await in_thread(Work.LISTENERS, server_context, settings)
        self._contexts[listener.name] = (listener, context)

    def secure(self, transport: ConnectionTransport, session: Session) -> ConnectionTransport:
        """Return what a new connection of a listener goes over: TLS, if the listener has that.

        Raises:
            TlsFailedError: It has, and no keys that can be used.
        """
        found = self._contexts.get(session.listener_name)
        if found is None:
            return transport
        listener, context = found
        if context is None or listener.tls is None:
            raise TlsFailedError(f"{listener.name} has no keys")
        return TlsTransport(
            transport,
            context,
            self._turns,
            who=f"{session.peer} on {session.listener_name}",
            deadline_s=self._deadline_s,
            # With SASL that says who a client is.
            on_secured=_ignore if listener.sasl else partial(_know, listener.tls, session),
        )


def _ignore(_engine: ssl.SSLObject) -> None:
    pass


def _know(settings: TlsSettings, session: Session, engine: ssl.SSLObject) -> None:
    """Know a client by its certificate, if it has shown one.

    Raises:
        TlsFailedError: No rule says who that is.
        MalformedFrameError: The certificate has no name that can be read.
    """
    certificate = engine.getpeercert(binary_form=True)
    if not certificate:
        return
    subject = subject_of(certificate)
    name = principal_name(settings.rules, subject)
    if name is None:
        raise TlsFailedError(f"no rule of ssl.principal.mapping.rules fits {subject[:256]!r}")
    session.principal = Principal("User", name)
