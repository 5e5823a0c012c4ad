"""Readiness of TLS connections: their transport is its own `Sockets` (poller.py).

Decrypted bytes make it readable, which a poller does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.net.sockets.transport import ConnectionTransport
from wirebroker.net.tls.tls_receiving import TlsReceiving
from wirebroker.net.tls.tls_sending import TlsSending

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.net.tls.tls_engine import TlsEngine
    from wirebroker.net.tls.tls_turns import TlsTurns


class TlsReadiness(ConnectionTransport):
    """Base of TlsTransport that reports readiness."""

    __slots__ = (
        "_carrier",
        "_fault",
        "_is_told",
        "_reader",
        "_receiving",
        "_sending",
        "_turns",
        "_writer",
    )

    def __init__(self, engine: TlsEngine, carrier: ConnectionTransport, turns: TlsTurns) -> None:
        super().__init__(self, carrier.descriptor)
        self._carrier = carrier
        self._turns = turns
        self._sending = TlsSending(engine, carrier)
        self._receiving = TlsReceiving(engine, carrier, self._sending, turns.area)
        self._fault: OSError | None = None
        self._reader: Callable[[], None] | None = None
        self._writer: Callable[[], None] | None = None
        self._is_told = False

    def _on_carrier_readable(self) -> None:
        raise NotImplementedError

    def _on_carrier_writable(self) -> None:
        raise NotImplementedError

    def add_reader(self, _fd: int, callback: Callable[[], None], /) -> None:
        """See Sockets."""
        self._reader = callback
        self._carrier.sockets.add_reader(self._carrier.descriptor, self._on_carrier_readable)
        self._look()

    def remove_reader(self, _fd: int, /) -> None:
        """See Sockets."""
        self._reader = None
        self._carrier.sockets.remove_reader(self._carrier.descriptor)

    def add_writer(self, _fd: int, callback: Callable[[], None], /) -> None:
        """See Sockets."""
        self._writer = callback
        self._carrier.sockets.add_writer(self._carrier.descriptor, self._on_carrier_writable)

    def remove_writer(self, _fd: int, /) -> None:
        """See Sockets."""
        self._writer = None
        if not self._sending.has_unsent:
            self._carrier.sockets.remove_writer(self._carrier.descriptor)

    def _look(self) -> None:
        """Call back in the next turn for what the carrier does not report."""
        is_readable = self._fault is not None or self._receiving.is_readable
        if is_readable and self._reader is not None and not self._is_told:
            self._is_told = True
            self._turns.loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._is_told = False
        if self._reader is not None:
            self._reader()
            self._look()
