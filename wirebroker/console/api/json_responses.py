"""Responses of the HTTP interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse

from wirebroker.codecs.errors import ErrorCode
from wirebroker.console.changes.change import ChangeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.errors import ClientError

_MISSING: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_ID}
)


def error_response(
    status: int, message: str, headers: Mapping[str, str] | None = None, **details: Any
) -> JSONResponse:
    """Return an error."""
    error = {"status": status, "message": message, **details}
    return JSONResponse({"error": error}, status, headers)


def failure_response(error: ChangeError | ClientError) -> JSONResponse:
    """Return a failure: 400 invalid values, 404 missing, 409 refused, 502 no response."""
    if isinstance(error, ChangeError):
        return error_response(400, str(error), field=error.field)
    if error.code in _MISSING:
        return error_response(404, str(error))
    return error_response(409 if error.code else 502, str(error))
