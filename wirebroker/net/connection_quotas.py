"""How many connections there may be, and how fast they may come: Kafka's ConnectionQuotas.

    max.connections                   of all listeners, and of each (listener.name.<listener>.…)
    max.connections.per.ip            of one address, with overrides
    max.connection.creation.rate      of all listeners, and of each

Beyond the first and the last a newcomer waits, beyond the second it is closed. The listener between
brokers, if there are others, is held to its own limits only.

Source: Kafka's ConnectionQuotas; the rate is its SampledStat's, see `CreationRate`.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.net.settings import NetworkSettings

_SAMPLE_S: Final = 1.0
_SAMPLES: Final = 11
_LONGEST_DELAY_S: Final = _SAMPLE_S


class CreationRate:
    """Connections in a second, over the last eleven samples of a second.

    As in Kafka at least ten seconds count: a broker that has been quiet takes ten times its rate at
    once before anybody waits.
    """

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        # When each sample begins (monotonic, in seconds), and how many came in it.
        self._samples: deque[list[float]] = deque()

    def delay_s(self, now: float, limit: int) -> float:
        """Count a connection; return how long it has to wait, a second at most."""
        samples = self._samples
        while samples and samples[0][0] + _SAMPLES * _SAMPLE_S <= now:
            samples.popleft()
        if not samples or samples[-1][0] + _SAMPLE_S <= now:
            samples.append([now, 0.0])
        samples[-1][1] += 1
        elapsed = now - samples[0][0]
        elapsed += max(0, _SAMPLES - 1 - int(elapsed / _SAMPLE_S)) * _SAMPLE_S
        if not limit:
            return _LONGEST_DELAY_S
        rate = sum(count for _, count in samples) / elapsed
        return min(max(0.0, (rate - limit) / limit * elapsed), _LONGEST_DELAY_S)


class ConnectionQuotas:
    """The counts of one broker's connections, and what they may be.

    Attributes:
        settings: The limits; replaced as a whole when they change.
    """

    __slots__ = (
        "_by_address",
        "_by_listener",
        "_max_sockets",
        "_rate",
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
