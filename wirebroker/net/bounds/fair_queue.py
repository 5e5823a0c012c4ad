"""A queue in which addresses take turns, so that one address cannot delay the others."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class FairQueue(Generic[_Item]):
    """Waiting items by address; first in, first out within an address."""

    __slots__ = ("_by_address", "_count")

    # Every address has an item; _count is their total.

    def __init__(self) -> None:
        self._by_address: dict[str, deque[_Item]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, item: _Item) -> None:
        """Add an item; a new address comes after one item of each other address."""
        self._by_address.setdefault(share_of(address), deque()).append(item)
        self._count += 1

    def take(self) -> _Item:
        """Return the next item."""
        address = next(iter(self._by_address))
        items = self._by_address.pop(address)
        item = items.popleft()
        if items:
            self._by_address[address] = items
        self._count -= 1
        return item


def share_of(address: str) -> str:
    """Return what shares turns: an IPv4 address, or the 64-bit prefix of an IPv6 site."""
    if ":" not in address:
        return address
    head, _, tail = address.partition("::")
    groups = head.split(":")
    if tail or address.endswith("::"):
        missing = 8 - len(groups) - len(tail.split(":"))
        groups += ["0"] * max(0, missing) + tail.split(":")
    return ":".join(groups[:4])
