"""Log lines of connections that end abnormally, one each."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.log_bound import about
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.pending import HandlerFailedError
from wirebroker.net.slice_error import SliceError

if TYPE_CHECKING:
    from wirebroker.request.session import Session

logger = logging.getLogger("wirebroker.net")

_PEER_IS_GONE: Final = frozenset(
    {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.ENOTCONN, errno.ETIMEDOUT}
)


def log_refused(session: Session, error: Exception) -> None:
    """Log what the peer sent, or a handler's exception with its traceback."""
    peer, listener = session.peer, session.listener_name
    bounds = about(peer, listener)
    if isinstance(error, HandlerFailedError):
        logger.error(
            "closing %s on %s: %s", peer, listener, error, exc_info=error.__cause__, extra=bounds
        )
        return
    level = logging.WARNING if isinstance(error, MalformedFrameError) else logging.INFO
    logger.log(level, "closing %s on %s: %s", peer, listener, error, extra=bounds)


def say_lost(session: Session, error: OSError) -> None:
    """Log a failure of the socket or the file that was being sent."""
    peer, listener = session.peer, session.listener_name
    bounds = about(peer, listener)
    if isinstance(error, ConnectionError) or error.errno in _PEER_IS_GONE:
        logger.debug("%s on %s disconnected: %s", peer, listener, error, extra=bounds)
    elif isinstance(error, SliceError) and error.is_gone:
        logger.info(
            "closing %s on %s: %s no longer exists",
            *(peer, listener, error.path),
            extra=bounds,
        )
    else:
        logger.error("closing %s on %s: %s", peer, listener, error, extra=bounds)


def say_cut_short(session: Session, arrived: str) -> None:
    """Log that the peer closed within a request."""
    logger.info(
        "%s on %s closed its connection within a request (%s)",
        session.peer,
        session.listener_name,
        arrived,
        extra=about(session.peer, session.listener_name),
    )


def say_closed(session: Session, reason: str) -> None:
    """Log why a connection is closed (idle, late, too many)."""
    peer, listener = session.peer, session.listener_name
    logger.info("closing %s on %s: %s", peer, listener, reason, extra=about(peer, listener))
