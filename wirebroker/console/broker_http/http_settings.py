"""A cluster's settings for HTTP, in its section of the console's file.

wirebroker.metrics.urls=http://broker1:8080/metrics,http://broker2:8080/metrics
wirebroker.test.url=http://127.0.0.1:8080
wirebroker.http.token=…
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

METRICS_URLS: Final = "wirebroker.metrics.urls"
TEST_URL: Final = "wirebroker.test.url"
TOKEN: Final = "wirebroker.http.token"  # noqa: S105 - a name
_MOST_URLS: Final = 200


class HttpSettings(NamedTuple):
    """The HTTP addresses of a cluster.

    Attributes:
        metrics_urls: Of the brokers' metrics pages, and of those of delivery services.
        test_url: Of a broker in test mode, without a path; None for none.
        token: For all of them; None for none.
    """

    metrics_urls: tuple[str, ...] = ()
    test_url: str | None = None
    token: str | None = None


def http_settings(properties: Mapping[str, str]) -> HttpSettings:
    """Return the settings of a section.

    Raises:
        ValueError: A URL is invalid, or there are more than 200.
    """
    urls = [url.strip() for url in properties.get(METRICS_URLS, "").split(",") if url.strip()]
    if len(urls) > _MOST_URLS:
        raise ValueError(f"{METRICS_URLS} has more than {_MOST_URLS} addresses")
    test_url = properties.get(TEST_URL, "").strip().rstrip("/") or None
    for name, url in ((METRICS_URLS, url) for url in urls):
        _check(name, url)
    if test_url is not None:
        _check(TEST_URL, test_url)
        if urlsplit(test_url).path:
            raise ValueError(f"{TEST_URL}={test_url} has a path: write http://HOST:PORT")
    return HttpSettings(tuple(dict.fromkeys(urls)), test_url, properties.get(TOKEN) or None)


def _check(name: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise ValueError(f"{name}: {url} is not an address such as http://HOST:PORT")
    _ = parts.port  # raises ValueError
