"""What the handlers of the transaction APIs share: error codes that older clients know."""

from __future__ import annotations

from wirebroker.codecs.errors import ErrorCode


def known_error(error: ErrorCode, *, version: int, fenced_from: int) -> ErrorCode:
    """Return an error as a request's version knows it: INVALID_PRODUCER_EPOCH for PRODUCER_FENCED.

    Args:
        error: What is wrong.
        version: Of the request.
        fenced_from: The first version that knows PRODUCER_FENCED (KIP-588).
    """
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
