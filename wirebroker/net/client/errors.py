"""Errors of connections that this process opens.

Error codes in responses are not PeerErrors.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from wirebroker.codecs.errors import ErrorCode


class PeerError(Exception):
    """A request without a response: retry, or use another node.

    With `may_have_arrived`, the peer may have executed the request; `peer` is its `host:port`.
    """

    def __init__(self, peer: str, what: str, *, may_have_arrived: bool = False) -> None:
        super().__init__(f"{peer}: {what}")
        self.peer = peer
        self.what = what
        self.may_have_arrived = may_have_arrived


class CannotConnectError(PeerError):
    """No connection was opened; the request was not sent."""


class AuthenticationFailedError(CannotConnectError):
    """The peer rejects this node's credentials (raised by a Handshake): do not retry."""


class ConnectionLostError(PeerError):
    """The connection ended before the response arrived."""


class BrokenProtocolError(ConnectionLostError):
    """The peer's response has a wrong size, correlation id or body."""


class LongResponseError(BrokenProtocolError):
    """The peer's response is longer than this connection accepts."""


class RequestTimedOutError(PeerError):
    """The deadline passed; later responses on the connection are lost with it.

    With `is_denied`, all controllers that responded last deny this node ClusterAction.
    """

    def __init__(
        self, peer: str, what: str, *, may_have_arrived: bool = False, is_denied: bool = False
    ) -> None:
        super().__init__(peer, what, may_have_arrived=may_have_arrived)
        self.is_denied = is_denied


class UnsupportedVersionError(PeerError):
    """No common version of the request; the connection stays open."""


# In the texts of asyncio, which also have the addresses; one text may have several errors.
_FAILED_CONNECT: Final = re.compile(r"\[Errno (\d+)\] Connect call failed")


def reason_of(fault: Exception) -> str:
    """Return why a connection failed or ended, such as `connection refused`; perhaps no text.

    The address and the number of an OSError are omitted.
    """
    codes = [int(code) for code in _FAILED_CONNECT.findall(str(fault))]
    if codes:
        # Other addresses of the name may be of a disabled IP version.
        code = errno.ECONNREFUSED if errno.ECONNREFUSED in codes else codes[0]
        return os.strerror(code).lower()
    if not isinstance(fault, OSError) or fault.errno is None:
        return str(fault)
    reason = fault.strerror or ""
    return reason.lower() if reason == os.strerror(fault.errno) else reason


def seconds_of(duration_s: float) -> str:
    """Return a timeout for a message, such as `0.25 s` or `30 s`; never `0 s`."""
    return f"{max(duration_s, 0.01):.2g} s" if duration_s < 10 else f"{duration_s:.0f} s"


_NAMES = {int(code): code.name for code in ErrorCode}


def error_name(code: int) -> str:
    """Return an error code's name, or the number of an unknown one."""
    return _NAMES.get(code, f"error {code}")
