"""Decoding of bodies for handlers that do it themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, coding, in_thread
from wirebroker.codecs.messages import decode_request

if TYPE_CHECKING:
    from wirebroker.request.request import Request


async def decoded(request: Request) -> Any:
    """Decode a body, in a thread if it is long.

    The frame must be kept (Request.keep) or belong to the coroutine.

    Raises:
        MalformedFrameError: The body is malformed.
    """
    arguments = request.key, request.version, request.frame, request.position
    if len(request.frame) - request.position <= LONGEST_ON_LOOP_BYTES:
        return decode_request(*arguments)
    return await in_thread(coding(len(request.frame)), decode_request, *arguments)
