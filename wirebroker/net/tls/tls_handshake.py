"""A handshake of TLS on a listener: who takes too long over it, or sends too much, is refused.

Its steps, of which one costs up to some milliseconds, are done one a turn of the loop
(tls_turns.py). Once it is done nothing of it is kept.

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

# Of a client until it is through: chains of certificates seldom have 10.
_MOST_BYTES: Final = 128 << 10
# And so many times that something of it has come: a step each, however small.
_MOST_STEPS: Final = 512
_HANDSHAKE: Final = 0x16
_HTTP_STARTS: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI")


class TlsHandshake:
    """One connection's.

    Attributes:
        received_bytes: Of the peer, so far.
        has_said: Whether the peer has been sent something, and so may have the last word.
    """

    __slots__ = ("_deadline", "_engine", "_on_secured", "_steps", "has_said", "received_bytes")

    def __init__(
        self,
        engine: TlsEngine,
        on_secured: Callable[[bytes | None], None],
        deadline: asyncio.TimerHandle,
    ) -> None:
        """Begin.

        Args:
            engine: Does it.
            on_secured: Given the peer's certificate (DER), if it has one, before anything is read;
                may raise TlsFailedError or MalformedFrameError.
            deadline: Ends it; cancelled with it.
        """
        self._engine = engine
        self._on_secured = on_secured
        self._deadline = deadline
        self._steps = 0
        self.has_said = False
        self.received_bytes = 0

    def take(self, area: memoryview, *, has_left: bool = False) -> bool:
        """Go on with what has arrived, nothing at the end; return whether it is done.

        Args:
            area: What has arrived.
            has_left: Whether the end is behind it: nothing is computed for who will not read it.

        Raises:
            TlsFailedError: The two don't agree.
            ConnectionResetError: The peer has only looked whether somebody listens.
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
            raise ConnectionResetError("it has closed its connection before its turn")
        is_done = self._engine.shake_hands(area)
        self.has_said = self.has_said or self._engine.said_bytes > 0
        return is_done

    def end(self) -> None:
        """Have the peer known.

        Raises:
            TlsFailedError: It must not come in.
        """
        self.cancel()
        try:
            self._on_secured(self._engine.certificate())
        except MalformedFrameError as error:
            raise TlsFailedError(str(error)) from error

    def cancel(self) -> None:
        """Wait for nothing any more."""
        self._deadline.cancel()


def _check_start(start: bytes) -> None:
    """Refuse who speaks something else, and say what."""
    if start[0] == _HANDSHAKE:
        return
    if start in _HTTP_STARTS:
        raise TlsFailedError("an HTTP client is talking to a listener with TLS")
    raise TlsFailedError("it speaks no TLS (security.protocol=PLAINTEXT, to a listener with TLS?)")
