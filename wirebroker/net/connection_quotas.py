"""How many connections there may be, and how fast they may come: Kafka's ConnectionQuotas.

    max.connections                   of all listeners, and of each (listener.name.<listener>.…)
    max.connections.per.ip            of one address, with overrides
    max.connection.creation.rate      of all listeners, and of each
    connection_creation_rate          of an address, or of each that has none of its own (a quota)

Beyond the first and the third a newcomer waits, beyond the second it is closed, beyond the last it
is closed after as long as it were to wait. The listener between
brokers, if there are others, is held to its own limits only.

Rates are over eleven samples of a second, of which ten count at least: a broker that has been quiet
takes ten times its rate at once before anybody waits.

Source: Kafka's ConnectionQuotas.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.quotas.quota_entity import connection_rates
from wirebroker.coordinator.quotas.sampled_rate import SampledRate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas
    from wirebroker.net.settings import NetworkSettings

_SAMPLE_S: Final = 1.0
_SAMPLES: Final = 11
_LONGEST_DELAY_S: Final = _SAMPLE_S
_NO_LIMIT: Final = 2**31 - 1
# Addresses whose rate is remembered; beyond, the one that came longest ago is forgotten.
_MOST_ADDRESSES: Final = 10_000


class CreationRate:
    """Connections in a second; who comes too soon waits for a sample at most."""

    __slots__ = ("_rate",)

    def __init__(self) -> None:
        self._rate = SampledRate(samples=_SAMPLES, sample_ms=round(_SAMPLE_S * 1000))

    def delay_s(self, now: float, limit: float) -> float:
        """Count a connection; return how long it has to wait, a second at most."""
        self._rate.count(1, now * 1000)
        if limit >= _NO_LIMIT:
            return 0.0
        if not limit:
            return _LONGEST_DELAY_S
        return min(self._rate.delay_ms(limit, now * 1000) / 1000, _LONGEST_DELAY_S)

    def take_back(self, now: float) -> None:
        """Count a connection no more that was counted at this time."""
        self._rate.count(-1, now * 1000)


class ConnectionQuotas:
    """The counts of one broker's connections, and what they may be.

    Attributes:
        settings: The limits; replaced as a whole when they change.
    """

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

    # _total is the sum of the counts by address, and of those by listener.

    def __init__(self, settings: NetworkSettings, *, max_sockets: int) -> None:
        """Begin without connections; `max_sockets` is what open files leave room for."""
        self.settings = settings
        self._max_sockets = max_sockets
        self._total = 0
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._rate = CreationRate()
        self._rates: dict[str, CreationRate] = {}
        self._rate_of: dict[str | None, float] = {}
        # By address, which came longest ago first.
        self._address_rates: OrderedDict[str, CreationRate] = OrderedDict()

    def use_rates(self, quotas: ClientQuotas) -> None:
        """Go by these quotas of addresses from now on."""
        self._rate_of = connection_rates(quotas)

    def address_delay_s(self, address: str, now: float) -> float:
        """Count a connection of an address; return when to close it; 0: it may be served.

        Args:
            address: Whose it is.
            now: The monotonic time.
        """
        limit = self._rate_of.get(address, self._rate_of.get(None))
        if limit is None:
            return 0.0
        rates = self._address_rates
        rate = rates.pop(address, None)
        if rate is None:
            while len(rates) >= _MOST_ADDRESSES:
                rates.popitem(last=False)
            rate = CreationRate()
        rates[address] = rate
        delay_s = rate.delay_s(now, limit)
        if delay_s:
            rate.take_back(now)
        return delay_s

    def has_room(self, listener: str) -> bool:
        """Tell whether a listener may open a connection now."""
        settings = self.settings
        if self._total >= self._max_sockets:
            return False
        own_limit = settings.max_connections_of.get(listener, settings.max_connections)
        if self._by_listener[listener] >= own_limit:
            return False
        return self._is_protected(listener) or self._total < settings.max_connections

    def excess(self) -> int:
        """Return how many connections there are beyond max.connections."""
        return max(0, self._total - self.settings.max_connections)

    def may_be_closed(self, listener: str) -> bool:
        """Tell whether a listener's connections are closed to come down to max.connections."""
        return not self._is_protected(listener)

    def is_too_many_of(self, host: str) -> bool:
        """Tell whether an address has all the connections that it may have."""
        settings = self.settings
        overrides = settings.max_connections_per_ip_overrides
        return self._by_address[host] >= overrides.get(host, settings.max_connections_per_ip)

    def delay_s(self, listener: str, now: float) -> float:
        """Count that a connection was accepted; return how long it has to wait to be served."""
        settings = self.settings
        limit = settings.creation_rate_of.get(listener, settings.max_connection_creation_rate)
        delay = self._rates.setdefault(listener, CreationRate()).delay_s(now, limit)
        if self._is_protected(listener):
            return delay
        return max(delay, self._rate.delay_s(now, settings.max_connection_creation_rate))

    def opened(self, listener: str, host: str) -> None:
        """Count a connection that is served from now on."""
        self._total += 1
        self._by_address[host] += 1
        self._by_listener[listener] += 1

    def closed(self, listener: str, host: str) -> None:
        """Count a connection no more."""
        self._total -= 1
        for counts, key in ((self._by_address, host), (self._by_listener, listener)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]

    def count_of(self, host: str) -> int:
        """Return how many connections an address has."""
        return self._by_address[host]

    def by_listener(self) -> Mapping[str, int]:
        """Return how many connections each listener has that has any."""
        return self._by_listener

    def check(self, total: int) -> None:
        """Assert the laws."""
        assert self._total == total
        assert sum(self._by_address.values()) == sum(self._by_listener.values()) == total

    def _is_protected(self, listener: str) -> bool:
        settings = self.settings
        return listener == settings.inter_broker_listener and len(settings.max_connections_of) > 1
