"""Limits for the number and rate of connections.

    max.connections                   in total, and per listener (listener.name.<listener>.…)
    max.connections.per.ip            per address, with overrides
    max.connection.creation.rate      in total, and per listener
    connection_creation_rate          per address, with a default (a client quota)

New connections wait beyond the first and third limit, are closed beyond the second, and closed
after the throttle time beyond the last. The inter-broker listener, unless it is the only one, only
has its own limits. All samples of a rate but one always count: so with the default window an idle
broker accepts ten times its rate before connections wait.

Source: Kafka's ConnectionQuotas.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.quotas.quota_entity import connection_rates
from wirebroker.coordinator.quotas.sampled_rate import SampledRate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas
    from wirebroker.net.settings import NetworkSettings

_NO_LIMIT: Final = 2**31 - 1
# Addresses with a rate.
_MOST_ADDRESSES: Final = 10_000


class CreationRate:
    """Rate of new connections, which limits them by delays."""

    __slots__ = ("_longest_delay_s", "_rate")

    def __init__(self, *, samples: int, sample_s: int) -> None:
        self._rate = SampledRate(samples=samples, sample_ms=sample_s * 1000)
        self._longest_delay_s = float(sample_s)

    def delay_s(self, now: float, limit: float) -> float:
        """Count a connection; return its delay, at most one sample."""
        self._rate.count(1, now * 1000)
        if limit >= _NO_LIMIT:
            return 0.0
        if not limit:
            return self._longest_delay_s
        return min(self._rate.delay_ms(limit, now * 1000) / 1000, self._longest_delay_s)

    def per_second(self, now: float) -> float:
        """Return the rate."""
        return self._rate.per_second(now * 1000)

    def take_back(self, now: float) -> None:
        """Remove a connection that was counted at this time."""
        self._rate.count(-1, now * 1000)


class ConnectionQuotas:
    """Counts of one broker's connections, and their limits."""

    __slots__ = (
        "_address_rates",
        "_by_address",
        "_by_listener",
        "_max_sockets",
        "_rate",
        "_rate_of",
        "_rates",
        "_total",
        "settings",
    )

    # _total is the sum by address, and by listener.

    def __init__(self, settings: NetworkSettings, *, max_sockets: int) -> None:
        """`max_sockets` is the limit from open files."""
        self.settings = settings
        self._max_sockets = max_sockets
        self._total = 0
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._rate = self._new_rate()
        self._rates: dict[str, CreationRate] = {}
        self._rate_of: dict[str | None, float] = {}
        # By address, least recent first.
        self._address_rates: OrderedDict[str, CreationRate] = OrderedDict()

    def _new_rate(self) -> CreationRate:
        settings = self.settings
        return CreationRate(samples=settings.rate_samples, sample_s=settings.rate_sample_s)

    def use_rates(self, quotas: ClientQuotas) -> None:
        """Apply quotas of addresses."""
        self._rate_of = connection_rates(quotas)

    def address_delay_s(self, address: str, now: float) -> float:
        """Count a connection; return when to close it, or 0 to serve it."""
        limit = self._rate_of.get(address, self._rate_of.get(None))
        if limit is None:
            return 0.0
        rates = self._address_rates
        rate = rates.pop(address, None)
        if rate is None:
            while len(rates) >= _MOST_ADDRESSES:
                rates.popitem(last=False)
            rate = self._new_rate()
        rates[address] = rate
        delay_s = rate.delay_s(now, limit)
        if delay_s:
            rate.take_back(now)
        return delay_s

    def address_rates(self, now: float, most: int) -> list[tuple[str, float]]:
        """Return the new connections per second from the most recent addresses with a quota."""
        latest = islice(reversed(self._address_rates.items()), most)
        return [(address, rate.per_second(now)) for address, rate in latest]

    def has_room(self, listener: str) -> bool:
        """Return whether a listener may open a connection now."""
        settings = self.settings
        if self._total >= self._max_sockets:
            return False
        own_limit = settings.max_connections_of.get(listener, settings.max_connections)
        if self._by_listener[listener] >= own_limit:
            return False
        return self._is_protected(listener) or self._total < settings.max_connections

    def excess(self) -> int:
        """Return how many connections are beyond max.connections."""
        return max(0, self._total - self.settings.max_connections)

    def may_be_closed(self, listener: str) -> bool:
        """Return whether max.connections may close a listener's connections."""
        return not self._is_protected(listener)

    def is_too_many_of(self, host: str) -> bool:
        """Return whether an address has reached its limit."""
        settings = self.settings
        overrides = settings.max_connections_per_ip_overrides
        return self._by_address[host] >= overrides.get(host, settings.max_connections_per_ip)

    def delay_s(self, listener: str, now: float) -> float:
        """Count an accepted connection; return its delay."""
        settings = self.settings
        limit = settings.creation_rate_of.get(listener, settings.max_connection_creation_rate)
        rate = self._rates.get(listener)
        if rate is None:
            rate = self._rates[listener] = self._new_rate()
        delay = rate.delay_s(now, limit)
        if self._is_protected(listener):
            return delay
        return max(delay, self._rate.delay_s(now, settings.max_connection_creation_rate))

    def opened(self, listener: str, host: str) -> None:
        """Count a connection that is served."""
        self._total += 1
        self._by_address[host] += 1
        self._by_listener[listener] += 1

    def closed(self, listener: str, host: str) -> None:
        """Remove a connection."""
        self._total -= 1
        for counts, key in ((self._by_address, host), (self._by_listener, listener)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]

    def count_of(self, host: str) -> int:
        """Return the number of an address's connections."""
        return self._by_address[host]

    def by_listener(self) -> Mapping[str, int]:
        """Return the counts by listener, without zeros."""
        return self._by_listener

    def check(self, total: int) -> None:
        """Assert the invariants."""
        assert self._total == total
        assert sum(self._by_address.values()) == sum(self._by_listener.values()) == total

    def _is_protected(self, listener: str) -> bool:
        settings = self.settings
        return listener == settings.inter_broker_listener and len(settings.max_connections_of) > 1
