"""Requests whose handlers decode them by themselves, where that may take long.

What is long is decoded in a thread, so that the loop serves others meanwhile (net/dispatch.py does
the same for all other handlers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.threads import coding, in_thread
from wirebroker.codecs.messages import decode_request

if TYPE_CHECKING:
    from wirebroker.request.request import Request

# net/dispatch.py's bound: some 10 ms of the loop's time.
_LONGEST_ON_LOOP_BYTES: Final = 64 << 10


async def decoded(request: Request) -> Any:
    """Decode a request's body; its frame must be kept (Request.keep), or the coroutine's own.

    Raises:
        MalformedFrameError: It is none.
    """
    arguments = request.key, request.version, request.frame, request.position
    if len(request.frame) - request.position <= _LONGEST_ON_LOOP_BYTES:
        return decode_request(*arguments)
    return await in_thread(coding(len(request.frame)), decode_request, *arguments)
