"""A cluster's settings for HTTP, in its section of the console's file.

wirebroker.test.url=http://127.0.0.1:8080
wirebroker.http.token=…
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

TEST_URL: Final = "wirebroker.test.url"
TOKEN: Final = "wirebroker.http.token"  # noqa: S105 - a name


class HttpSettings(NamedTuple):
    """The HTTP address of a cluster.

    Attributes:
        test_url: Of a broker in test mode, without a path; None for none.
        token: None for none.
    """

    test_url: str | None = None
    token: str | None = None


def http_settings(properties: Mapping[str, str]) -> HttpSettings:
    """Return the settings of a section.

    Raises:
        ValueError: The URL is invalid.
    """
    test_url = properties.get(TEST_URL, "").strip().rstrip("/") or None
    if test_url is not None:
        parts = urlsplit(test_url)
        is_base = not parts.path and not parts.query and parts.username is None
        if parts.scheme not in {"http", "https"} or not parts.hostname or not is_base:
            raise ValueError(f"{TEST_URL}={test_url} is not an address: write http://HOST:PORT")
        _ = parts.port  # raises ValueError
    return HttpSettings(test_url, properties.get(TOKEN) or None)
