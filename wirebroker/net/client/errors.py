"""Errors of connections that this node opens.

    PeerError                    base class: retry, or use another node
      CannotConnectError         refused, unreachable, no such host, timeout
        AuthenticationFailedError    the handshake was refused: retrying does not help
      ConnectionLostError        closed by either side while the request was pending
        BrokenProtocolError      protocol violation; the connection is closed
      RequestTimedOutError       no response by the deadline; the connection is closed
      UnsupportedVersionError    no common version of this request

Error codes in responses are not PeerErrors.
"""

from __future__ import annotations

from wirebroker.codecs.errors import ErrorCode


class PeerError(Exception):
    """A request without a response.

    Attributes:
        peer: `host:port`.
        may_have_arrived: Whether the peer may have executed the request.
    """

    def __init__(self, peer: str, what: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(f"{peer}: {what}")
        self.peer = peer
        self.what = what
        self.may_have_arrived = may_have_arrived


class CannotConnectError(PeerError):
    """No connection was opened; the request was not sent."""


class AuthenticationFailedError(CannotConnectError):
    """The peer rejects this node's credentials (raised by a Handshake)."""


class ConnectionLostError(PeerError):
    """The connection ended before the response arrived."""


class BrokenProtocolError(ConnectionLostError):
    """The peer's response has a wrong size, correlation id or body."""


class RequestTimedOutError(PeerError):
    """The deadline passed; later responses on the connection are lost with it."""


class UnsupportedVersionError(PeerError):
    """No common version of the request; the connection stays open."""


_NAMES = {int(code): code.name for code in ErrorCode}


def error_name(code: int) -> str:
    """Return an error code's name; the code itself if a newer Kafka defines it."""
    return _NAMES.get(code, f"error {code}")
