"""One HTTP request to a broker, bounded in time and size."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from wirebroker.base.clock import SystemClock
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock

_PART_BYTES: Final = 64 << 10


class HttpBounds(NamedTuple):
    """Bounds of a request.

    Attributes:
        timeout_s: The limit to connect, for each part of the response, and for the whole response.
        most_bytes: The maximum size of the response.
    """

    timeout_s: float
    most_bytes: int


_CONTROL_BOUNDS: Final = HttpBounds(8.0, 4 << 20)


class HttpReply(NamedTuple):
    """A response with its status."""

    status: int
    body: bytes


async def http_request(
    token: str | None, method: str, url: str, body: bytes | None = None
) -> HttpReply:
    """Send a request, with a token if there is one; return its response without redirecting.

    Raises:
        ClientError: The address does not respond, or the response is too large.
    """
    bounds = _CONTROL_BOUNDS
    return await in_thread(Work.HTTP, blocking_request, token, method, url, body, bounds)


def blocking_request(
    token: str | None, method: str, url: str, body: bytes | None, bounds: HttpBounds
) -> HttpReply:
    """Send a request and return its response; redirects are not followed.

    Raises:
        ClientError: The address does not respond, or the response is too large.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=bounds.timeout_s)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
    try:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        content = _content(answer, SystemClock(), bounds)
    except (OSError, http.client.HTTPException) as error:
        raise ClientError(f"{shown} does not respond: {error}") from None
    finally:
        connection.close()
    if len(content) > bounds.most_bytes:
        raise ClientError(f"the response of {shown} is larger than {bounds.most_bytes >> 20} MiB")
    return HttpReply(answer.status, content)


def _content(answer: http.client.HTTPResponse, clock: Clock, bounds: HttpBounds) -> bytes:
    """Return the body, or a bit more than allowed of it; a slow one raises TimeoutError."""
    deadline = clock.monotonic() + bounds.timeout_s
    content = bytearray()
    while len(content) <= bounds.most_bytes and (part := answer.read1(_PART_BYTES)):
        content += part
        if clock.monotonic() > deadline:
            raise TimeoutError(f"the response takes longer than {bounds.timeout_s:g} s")
    return bytes(content)
