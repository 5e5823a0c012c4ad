"""Bodies of requests: bounded in size and time, parsed without holding the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.json_text import parse_json
from wirebroker.console.login import form_tokens
from wirebroker.console.pages.page import console_of, viewer_of

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_BODY_BYTES: Final = 1 << 20
# Of forms without a session, and of those with an id only.
SMALL_BODY_BYTES: Final = 16 << 10
_MOST_FIELDS: Final = 100
_PATIENCE_S: Final = 20.0
# Parsing this much takes about a millisecond.
_MOST_ON_LOOP_BYTES: Final = 16 << 10
_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"


async def sent_form(request: Request, *, most_bytes: int = MOST_BODY_BYTES) -> dict[str, str]:
    """Return the fields of a sent form of this browser.

    Raises:
        HTTPException: 403 if its token is missing or another browser's; 400, 408, 413, 415.
    """
    body = await _body(request, _FORM, most_bytes)
    form: dict[str, str] = await _parsed(_form_fields, body)
    viewer = viewer_of(request)
    token = form.pop(form_tokens.FIELD, "")
    if not console_of(request).access.form_tokens.is_valid(token, viewer.cookie):
        raise HTTPException(
            403, "This form is no longer valid. Open its page again, and send it from there."
        )
    return form


async def sent_json(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request; a missing body is an empty object.

    Raises:
        HTTPException: 400, 408, 413, 415.
    """
    if request.headers.get("content-length") == "0":
        return {}
    body = await _body(request, _JSON, MOST_BODY_BYTES)
    parsed: dict[str, Any] = await _parsed(_json_object, body) if body else {}
    return parsed


async def _body(request: Request, media_type: str, most_bytes: int) -> bytes:
    sent_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent_type != media_type:
        raise HTTPException(415, f"The Content-Type must be {media_type}.")
    length = request.headers.get("content-length", str(most_bytes))  # none if it is chunked
    if not (length.isascii() and length.isdigit()) or int(length[:20]) > most_bytes:
        raise _too_large(most_bytes)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            if int(length) <= SMALL_BODY_BYTES:
                return await _read(request, SMALL_BODY_BYTES)
            async with console_of(request).bodies.large:
                return await _read(request, most_bytes)
    except TimeoutError:
        raise HTTPException(408, f"The request took longer than {_PATIENCE_S:g} s.") from None
    except ClientDisconnect:
        raise HTTPException(400, "The request is incomplete.") from None


async def _read(request: Request, most_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise _too_large(most_bytes)
    return bytes(body)


def _too_large(most_bytes: int) -> HTTPException:
    return HTTPException(413, f"The request is larger than {most_bytes >> 10} KiB.")


async def _parsed(parse: Any, body: bytes) -> Any:
    try:
        if len(body) <= _MOST_ON_LOOP_BYTES:
            return parse(body)
        return await in_thread(Work.FORMS, parse, body)
    except ValueError as error:
        raise HTTPException(400, f"The request cannot be read: {error}.") from None


def _form_fields(body: bytes) -> dict[str, str]:
    pairs = parse_qsl(
        body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
    )
    return dict(pairs)


def _json_object(body: bytes) -> dict[str, Any]:
    parsed = parse_json(body, fields=_distinct_fields)
    if not isinstance(parsed, dict):
        raise ValueError("the body must be a JSON object")  # noqa: TRY004 - the client's mistake
    return cast("dict[str, Any]", parsed)


def _distinct_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"the field {name[:80]!r} appears twice")
        fields[name] = value
    return fields
