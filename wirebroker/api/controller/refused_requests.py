"""Log lines about requests between voters that this voter refuses.

Replicas of this cluster send them only with a wrong configuration, for a voter whose disk was
replaced, or to a voter that lags (after a partition, for example). All others come from another
cluster or an attacker.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.log_bound import about
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.request.request import Request

LOGGER = logging.getLogger(__name__)

_ADVICE: Final = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "it belongs to another cluster: check its controllers",
    ErrorCode.INVALID_VOTER_KEY: (
        "it is for a voter with another id or directory: if a disk was replaced, replace the voter"
    ),
    ErrorCode.UNKNOWN_LEADER_EPOCH: (
        "its epoch is later than the one known here: check its sender if this node does not lag"
    ),
    ErrorCode.INVALID_REQUEST: "it breaks the protocol: restrict access to this listener",
}


def log_refusal(request: Request, body: dict[str, Any]) -> None:
    """Write a line if a response refuses its request; lines about one peer are limited."""
    error = _error_of(body)
    if error not in _ADVICE:
        return
    session = request.session
    # Expected in a healthy quorum after a network partition.
    is_expected = error is ErrorCode.UNKNOWN_LEADER_EPOCH
    LOGGER.log(
        logging.INFO if is_expected else logging.WARNING,
        "refused %s from %s on %s with %s: %s",
        request.key.name,
        session.peer,
        session.listener_name,
        error.name,
        _ADVICE[error],
        extra=about(session.peer, session.listener_name),
    )


def _error_of(body: dict[str, Any]) -> ErrorCode:
    """Return the error at the top, or of the only partition."""
    error = body.get("error_code", 0)
    for topic in body.get("topics") or body.get("responses") or ():
        for partition in topic["partitions"]:
            error = error or partition["error_code"]
    return ErrorCode(error)
