"""Error codes that older clients understand."""

from __future__ import annotations

from wirebroker.codecs.errors import ErrorCode


def error_for_version(error: ErrorCode, *, version: int, fenced_from: int) -> ErrorCode:
    """Replace PRODUCER_FENCED by INVALID_PRODUCER_EPOCH before version `fenced_from` (KIP-588)."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
