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
    from wirebroker.console.model.http_settings import HttpSettings

_MOST_BYTES: Final = 4 << 20
_PART_BYTES: Final = 64 << 10
# To connect, for each part of the response, and for all of them.
_TIMEOUT_S: Final = 8.0


class HttpReply(NamedTuple):
    """A response with its status."""

    status: int
    body: bytes


async def http_request(
    settings: HttpSettings, method: str, url: str, body: bytes | None = None
) -> HttpReply:
    """Send a request and return its response; redirects are not followed.

    Raises:
        ClientError: The address does not respond, or the response is too large.
    """
    return await in_thread(Work.HTTP, _request, settings.token, method, url, body)


def _request(token: str | None, method: str, url: str, body: bytes | None) -> HttpReply:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        content = _content(answer, SystemClock())
    except (OSError, http.client.HTTPException) as error:
        raise ClientError(f"{url} does not respond: {error}") from None
    finally:
        connection.close()
    if len(content) > _MOST_BYTES:
        raise ClientError(f"the response of {url} is larger than {_MOST_BYTES >> 20} MiB")
    return HttpReply(answer.status, content)


def _content(answer: http.client.HTTPResponse, clock: Clock) -> bytes:
    """Return the body, or a bit more than allowed of it; a slow one raises TimeoutError."""
    deadline = clock.monotonic() + _TIMEOUT_S
    content = bytearray()
    while len(content) <= _MOST_BYTES and (part := answer.read1(_PART_BYTES)):
        content += part
        if clock.monotonic() > deadline:
            raise TimeoutError(f"the response takes longer than {_TIMEOUT_S:g} s")
    return bytes(content)
