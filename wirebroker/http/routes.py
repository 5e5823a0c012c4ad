"""Which function answers which path. What is served over HTTP adds its routes here.

routes = Routes()
routes.add("GET", "/ready", ready)                # async (HttpRequest) -> HttpAnswer
routes.add("POST", "/test/v1/faults/", faults)    # and whatever is below, by the last slash
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
        answering: Called with the request.
        is_open: Whether it is answered without a token, from anywhere (probes have none).
    """

    answering: Answering
    is_open: bool


class Routes:
    """The routes of one broker."""

    __slots__ = ("_by_path",)

    def __init__(self) -> None:
        self._by_path: dict[str, dict[str, Route]] = {}

    def add(self, method: str, path: str, answering: Answering, *, is_open: bool = False) -> None:
        """Have a function answer a method of a path, and of all below it if it ends in a slash."""
        methods = self._by_path.setdefault(path, {})
        assert method not in methods, f"{method} {path} has two routes"
        methods[method] = Route(answering, is_open)

    def find(self, method: str, path: str) -> Route:
        """Return who answers; the longest path counts.

        Raises:
            HttpError: 404, nobody answers the path; 405, not this method of it.
        """
        methods = self._by_path.get(path) or self._below(path)
        if methods is None:
            raise HttpError(404, f"there is nothing at {path}; there is {', '.join(self._paths())}")
        route = methods.get(method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            raise HttpError(405, f"{path} takes {allowed}", {"Allow": allowed})
        return route

    def _below(self, path: str) -> dict[str, Route] | None:
        """Return the methods of the longest path that ends in a slash and that this is below."""
        found = [each for each in self._by_path if each.endswith("/") and path.startswith(each)]
        return self._by_path[max(found, key=len)] if found else None

    def _paths(self) -> list[str]:
        return sorted(self._by_path)
