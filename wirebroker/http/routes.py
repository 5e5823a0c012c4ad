"""Routes: the functions that serve paths.

    routes.add("GET", "/ready", ready)                # async (HttpRequest) -> HttpAnswer
    routes.add("POST", "/test/v1/faults/", faults)    # final slash: all paths below it, too

Other packages add theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wirebroker.http.message import HttpError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.http.message import HttpAnswer, HttpRequest

Answering: TypeAlias = "Callable[[HttpRequest], Awaitable[HttpAnswer]]"


class Route(NamedTuple):
    """One method of one path.

    Attributes:
        is_open: Whether it needs no token, as for probes.
    """

    answering: Answering
    is_open: bool


class Routes:
    """The routes of one broker."""

    __slots__ = ("_by_path",)

    def __init__(self) -> None:
        self._by_path: dict[str, dict[str, Route]] = {}

    def add(self, method: str, path: str, answering: Answering, *, is_open: bool = False) -> None:
        """Register a function for a method of a path."""
        methods = self._by_path.setdefault(path, {})
        assert method not in methods, f"{method} {path} has two routes"
        methods[method] = Route(answering, is_open)

    def find(self, method: str, path: str) -> Route:
        """Return the route of the longest matching path.

        Raises:
            HttpError: 404 if no path matches; 405 if it has no such method.
        """
        methods = self._by_path.get(path) or self._below(path)
        if methods is None:
            raise HttpError(404, f"nothing at {path}; the paths are {', '.join(self._paths())}")
        route = methods.get(method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            raise HttpError(405, f"{path} accepts {allowed}", {"Allow": allowed})
        return route

    def _below(self, path: str) -> dict[str, Route] | None:
        prefixes = [
            prefix for prefix in self._by_path if prefix.endswith("/") and path.startswith(prefix)
        ]
        return self._by_path[max(prefixes, key=len)] if prefixes else None

    def _paths(self) -> list[str]:
        return sorted(self._by_path)
