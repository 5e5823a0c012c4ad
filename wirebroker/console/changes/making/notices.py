"""Results of changes that wait for the next page of their browser."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

_MOST_BROWSERS: Final = 1000
_MOST_OF_ONE: Final = 5


class Notices:
    """One-time texts by browser; the oldest are dropped."""

    __slots__ = ("_by_cookie",)

    def __init__(self) -> None:
        self._by_cookie: OrderedDict[str, deque[str]] = OrderedDict()

    def add(self, cookie: str, text: str) -> None:
        """Show a text on the browser's next page."""
        self._by_cookie.setdefault(cookie, deque(maxlen=_MOST_OF_ONE)).append(text)
        self._by_cookie.move_to_end(cookie)
        while len(self._by_cookie) > _MOST_BROWSERS:
            self._by_cookie.popitem(last=False)

    def take(self, cookie: str) -> list[str]:
        """Return the texts of a browser, once."""
        return list(self._by_cookie.pop(cookie, ()))
