"""A TLS handshake on a listener, limited in time, bytes and steps.

Source: RFC 8446, 4; Kafka's SslTransportLayer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.tls.tls_error import TlsFailedError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from wirebroker.net.tls.tls_engine import TlsEngine

# Certificate chains rarely have 10 KiB.
_MOST_BYTES: Final = 128 << 10
# Limit of receives, each of which costs a step.
_MOST_STEPS: Final = 512
_HANDSHAKE: Final = 0x16
_HTTP_STARTS: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI")


class TlsHandshake:
    """The handshake of one connection; `has_said` if something was sent to the peer."""

    __slots__ = ("_deadline", "_engine", "_on_secured", "_steps", "has_said", "received_bytes")

    def __init__(
        self,
        engine: TlsEngine,
        on_secured: Callable[[bytes | None], None],
        deadline: asyncio.TimerHandle,
    ) -> None:
        """Begin; the end cancels `deadline`. For `on_secured` see TlsTransport."""
        self._engine = engine
        self._on_secured = on_secured
        self._deadline = deadline
        self._steps = 0
        self.has_said = False
        self.received_bytes = 0

    def take(self, area: memoryview, *, has_left: bool = False) -> bool:
        """Continue with the received bytes (none at the end); return whether it is done.

        If the peer has disconnected after them (`has_left`), nothing is computed.

        Raises:
            TlsFailedError: It failed.
            ConnectionResetError: The peer disconnected without a handshake.
        """
        if not area:
            if not self.received_bytes:
                raise ConnectionResetError("it has closed its connection")
            raise TlsFailedError("it has closed its connection (does it trust our certificate?)")
        if not self.received_bytes:
            _check_start(bytes(area[:4]))
        self.received_bytes += len(area)
        if self.received_bytes > _MOST_BYTES:
            raise TlsFailedError(f"it sends more than {_MOST_BYTES} bytes")
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TlsFailedError(f"it sends its handshake in more than {_MOST_STEPS} pieces")
        if has_left:
            raise ConnectionResetError("it closed its connection before its handshake began")
        is_done = self._engine.shake_hands(area)
        self.has_said = self.has_said or self._engine.outgoing_bytes > 0
        return is_done

    def end(self) -> None:
        """Report the peer's certificate.

        Raises:
            TlsFailedError: The peer is refused.
        """
        self.cancel()
        try:
            self._on_secured(self._engine.certificate())
        except MalformedFrameError as error:
            raise TlsFailedError(str(error)) from error

    def cancel(self) -> None:
        """Cancel the deadline."""
        self._deadline.cancel()


def _check_start(start: bytes) -> None:
    if start[0] == _HANDSHAKE:
        return
    if start in _HTTP_STARTS:
        raise TlsFailedError("an HTTP client is talking to a listener with TLS")
    raise TlsFailedError("it does not use TLS (security.protocol=PLAINTEXT at a TLS listener?)")
