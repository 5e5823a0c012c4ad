"""Addresses of the console's pages. Names are query parameters: they may contain any character."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode


def url(path: str, /, **parameters: Any) -> str:
    """Return a path with its parameters, without those that are None or empty."""
    given = {name: value for name, value in parameters.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def cluster_url(cluster: str, page: str = "", /, **parameters: Any) -> str:
    """Return a page of a cluster; the overview is the empty one."""
    return url(f"/c/{quote(cluster, safe='')}/{page}", **parameters)


def change_url(cluster: str, change: str, /, **values: Any) -> str:
    """Return the form of a kind of change, with these values in its fields."""
    return cluster_url(cluster, f"change/{change}", **values)


def changed_query(query: list[tuple[str, str]], /, **changes: Any) -> str:
    """Return a query string with other values; None and empty ones are removed."""
    kept = [(name, value) for name, value in query if name not in changes and value]
    added = [
        (name, str(value)) for name, value in changes.items() if value is not None and value != ""
    ]
    return f"?{urlencode([*kept, *added])}"
