"""Reads the metrics pages of brokers, bounded in time and size.

    http://broker1:9404/metrics?name[]=wirebroker_connections&name[]=…

wirebroker and the JMX exporter return only the named metrics. If the response has none of them, the
whole page is read, because other exporters may refuse or ignore the query.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from wirebroker.base.client_metric_names import ALL
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import ClientError
from wirebroker.client.http_client import HttpBounds, blocking_request, shown_url
from wirebroker.console.client_metrics.text_page import client_samples

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.console.client_metrics.text_page import ClientSamples

_QUERY: Final = urlencode([("name[]", name) for name in sorted(ALL)])
_BOUNDS: Final = HttpBounds(timeout_s=5.0, most_bytes=32 << 20)
_OK: Final = 200
_REFUSED: Final = frozenset({401, 403})


class TimedSamples(NamedTuple):
    """The samples of a page, and the seconds that it took; the wait for a thread does not count."""

    page: ClientSamples
    seconds: float


async def read_timed_samples(url: str, token: str | None, clock: Clock) -> TimedSamples:
    """Return the samples of a broker's metrics page, and the time that it took.

    Raises:
        ClientError: The address does not respond, refuses, or its page is too large.
    """
    return await in_thread(Work.SCRAPES, _read_timed, url, token, clock)


def _read_timed(url: str, token: str | None, clock: Clock) -> TimedSamples:
    began = clock.monotonic()
    page = _read(url, token)
    return TimedSamples(page, clock.monotonic() - began)


def _read(url: str, token: str | None) -> ClientSamples:
    separator = "&" if urlsplit(url).query else "?"
    found = _page(f"{url}{separator}{_QUERY}", url, token)
    return found if found.samples else _page(url, url, token)


def _page(full_url: str, url: str, token: str | None) -> ClientSamples:
    reply = blocking_request(token, "GET", full_url, None, _BOUNDS)
    shown = shown_url(url)
    if reply.status in _REFUSED:
        raise ClientError(f"{shown} refuses the token: set wirebroker.http.token")
    if reply.status != _OK:
        raise ClientError(f"{shown} is not a metrics page: it responds with status {reply.status}")
    return client_samples(io.BytesIO(reply.body))
