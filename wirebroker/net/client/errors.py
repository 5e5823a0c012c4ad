"""What may go wrong between us and a peer that we have connected to.

    PeerError                    all of them: `except PeerError` and try again, or another node
      CannotConnectError         refused, unreachable, no such host, no answer in time
        AuthenticationFailedError    the handshake was refused: trying again won't help by itself
      ConnectionLostError        closed by either side while the request waited
        BrokenProtocolError      the peer said what no Kafka says; the connection is closed
      RequestTimedOutError       no answer by the deadline; the connection is closed with it
      UnsupportedVersionError    the peer speaks no version of this request that we speak

What a peer *answers*, error codes included, is no PeerError: it is in the decoded answer.
"""

from __future__ import annotations

from wirebroker.codecs.errors import ErrorCode


class PeerError(Exception):
    """A request that has no answer.

    Attributes:
        peer: The other side as `host:port`.
        may_have_arrived: Whether the peer may have carried the request out.
    """

    def __init__(self, peer: str, what: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(f"{peer}: {what}")
        self.peer = peer
        self.what = what
        self.may_have_arrived = may_have_arrived


class CannotConnectError(PeerError):
    """No connection came about; the request was not sent."""


class AuthenticationFailedError(CannotConnectError):
    """The peer does not take us for whom we say we are (raised by a Handshake)."""


class ConnectionLostError(PeerError):
    """The connection ended before the answer came."""


class BrokenProtocolError(ConnectionLostError):
    """The peer sent what is no answer to what it was asked: a size, a correlation id, a body."""


class RequestTimedOutError(PeerError):
    """The deadline passed; answers come in order, so those behind it are lost with it."""


class UnsupportedVersionError(PeerError):
    """The peer has no version of the request that we speak; the connection stays open."""


_NAMES = {int(code): code.name for code in ErrorCode}


def error_name(code: int) -> str:
    """Name an error code that a peer has sent, perhaps one of a Kafka that is newer than us."""
    return _NAMES.get(code, f"error {code}")
