"""A limit of failed logins for each address: ten in a minute lock it out for a minute."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock

MOST_FAILURES: Final = 10
WINDOW_S: Final = 60.0
LOCKED_S: Final = 60.0
# Addresses that are remembered; with more, the ones that failed longest ago are forgotten.
_MOST_ADDRESSES: Final = 10_000
# Usual size of one customer's network.
_IPV6_PREFIX: Final = 64


class AttemptLimit:
    """Counts failed logins by address; of IPv6, by network of 64 bits.

    An attempt counts as failed until it succeeds, so parallel attempts do not exceed the limit.
    """

    # laws: len(_failures) <= _MOST_ADDRESSES; each deque has at most MOST_FAILURES times

    __slots__ = ("_clock", "_failures")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def locked_s(self, address: str) -> float:
        """Return for how many seconds an address is locked out; 0 if it is not."""
        times = self._failures.get(network_of(address))
        if times is None or len(times) < MOST_FAILURES:
            return 0.0
        now = self._clock.monotonic()
        if times[-1] - times[0] > WINDOW_S:
            return 0.0
        return max(0.0, times[-1] + LOCKED_S - now)

    def begin(self, address: str) -> None:
        """Count an attempt of an address that is not locked out."""
        key = network_of(address)
        times = self._failures.setdefault(key, deque(maxlen=MOST_FAILURES))
        self._failures.move_to_end(key)
        now = self._clock.monotonic()
        while times and (now - times[0] > WINDOW_S or len(times) == MOST_FAILURES):
            times.popleft()
        times.append(now)
        while len(self._failures) > _MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def succeed(self, address: str) -> None:
        """Count an attempt no longer; earlier failures still count.

        Otherwise a user could log in again and again to guess the password of another.
        """
        times = self._failures.get(network_of(address))
        if times:
            times.pop()


def network_of(address: str) -> str:
    """Return the key of an address: itself, or the network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))
