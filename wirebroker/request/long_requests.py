"""Decoding of requests whose handlers do it themselves.

Long requests are decoded in a thread, as net/dispatch.py does for all other handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, coding, in_thread
from wirebroker.codecs.messages import decode_request

if TYPE_CHECKING:
    from wirebroker.request.request import Request


async def decoded(request: Request) -> Any:
    """Decode a request's body.

    The frame must have been kept (Request.keep) or belong to the coroutine.

    Raises:
        MalformedFrameError: The body is malformed.
    """
    arguments = request.key, request.version, request.frame, request.position
    if len(request.frame) - request.position <= LONGEST_ON_LOOP_BYTES:
        return decode_request(*arguments)
    return await in_thread(coding(len(request.frame)), decode_request, *arguments)
