"""A line in which addresses take turns: many from one address do not keep another's one waiting."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class FairLine(Generic[_Item]):
    """What waits, by the address that it comes from; of one address in the order of its coming."""

    __slots__ = ("_by_address", "_count")

    # No address is there with nothing; _count is the sum of all.

    def __init__(self) -> None:
        self._by_address: dict[str, deque[_Item]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, item: _Item) -> None:
        """Have something wait; an address that is new waits behind one of each other address."""
        self._by_address.setdefault(share_of(address), deque()).append(item)
        self._count += 1

    def take(self) -> _Item:
        """Return the next, of the address whose turn it is; there is one."""
        address = next(iter(self._by_address))
        items = self._by_address.pop(address)
        item = items.popleft()
        if items:
            self._by_address[address] = items
        self._count -= 1
        return item


def share_of(address: str) -> str:
    """Return what has one turn: an IPv4 address, or the 64 bits of IPv6 that one site has."""
    if ":" not in address:
        return address
    head, _, tail = address.partition("::")
    groups = head.split(":")
    if tail or address.endswith("::"):
        missing = 8 - len(groups) - len(tail.split(":"))
        groups += ["0"] * max(0, missing) + tail.split(":")
    return ":".join(groups[:4])
