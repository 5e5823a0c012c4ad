"""A cluster's settings for HTTP, in its section of the console's file.

wirebroker.test.url=http://127.0.0.1:8080
wirebroker.metrics.urls=1=http://broker1:9404/metrics,2=http://broker2:9404/metrics
wirebroker.http.token=…

Addresses never come from the cluster: it could make the console send requests to other hosts.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

TEST_URL: Final = "wirebroker.test.url"
METRICS_URLS: Final = "wirebroker.metrics.urls"
TOKEN: Final = "wirebroker.http.token"  # noqa: S105 - a name

_MOST_ID_DIGITS: Final = 10


class HttpSettings(NamedTuple):
    """The HTTP addresses of a cluster.

    Attributes:
        test_url: The address of a broker in test mode, without a path, or None.
        token: The token that the brokers require, or None.
        metrics_urls: The metrics pages of brokers, by broker id.
    """

    test_url: str | None = None
    token: str | None = None
    metrics_urls: Mapping[int, str] = MappingProxyType({})


NO_HTTP_SETTINGS: Final = HttpSettings()


def http_settings(properties: Mapping[str, str]) -> HttpSettings:
    """Return the settings of a section.

    Raises:
        ValueError: A URL or broker id is invalid.
    """
    test_url = properties.get(TEST_URL, "").strip().rstrip("/") or None
    if test_url is not None:
        parts = urlsplit(test_url)
        if not _is_address(test_url) or parts.path or parts.query:
            raise ValueError(f"{TEST_URL}={test_url} is not an address: write http://HOST:PORT")
        _ = parts.port  # raises ValueError
    return HttpSettings(
        test_url,
        properties.get(TOKEN) or None,
        MappingProxyType(_metrics_urls(properties.get(METRICS_URLS, ""))),
    )


def has_http_settings(properties: Mapping[str, str]) -> bool:
    """Return whether a section has any of these settings."""
    return any(properties.get(name, "").strip() for name in (TEST_URL, METRICS_URLS, TOKEN))


def has_metrics_urls(properties: Mapping[str, str]) -> bool:
    """Return whether a section names metrics pages."""
    return bool(properties.get(METRICS_URLS, "").strip())


def _metrics_urls(text: str) -> dict[int, str]:
    urls: dict[int, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        broker_id, equals, url = (part.strip() for part in item.partition("="))
        is_id = broker_id.isascii() and broker_id.isdigit() and len(broker_id) <= _MOST_ID_DIGITS
        if not equals or not is_id or not _is_address(url) or not _is_sendable(url):
            raise ValueError(
                f"{METRICS_URLS}: {item} is not a broker's metrics page: write"
                " BROKER_ID=http://HOST:PORT/metrics"
            )
        if int(broker_id) in urls:
            raise ValueError(f"{METRICS_URLS} has two addresses of broker {int(broker_id)}")
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError
        urls[int(broker_id)] = url if parts.path.strip("/") else page_of(url)
    return urls


def page_of(url: str) -> str:
    """Return the metrics page of an address, which may have a query."""
    return urlsplit(url)._replace(path="/metrics").geturl()


def _is_sendable(url: str) -> bool:
    """Return whether HTTP can name the host, path and query."""
    parts = urlsplit(url)
    target = parts.path + parts.query
    try:
        (parts.hostname or "").encode("idna")
    except UnicodeError:
        return False
    return target.isascii() and target.isprintable() and " " not in target


def _is_address(url: str) -> bool:
    parts = urlsplit(url)
    is_http = parts.scheme in {"http", "https"} and bool(parts.hostname)
    return is_http and parts.username is None and not parts.fragment
