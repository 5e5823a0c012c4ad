"""Meters of quotas, shared by clients, and removed when unused.

    (user, client id)  ->  the applied quota  ->  the meter of the clients that share it

Since clients choose their ids, both mappings are limited: beyond the limit the least recently used
meter is removed, and the cache of applied quotas is cleared. Meters unused for an hour are removed
as well.

Source: Kafka's ClientQuotaManager, SensorAccess.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from wirebroker.codecs.hashes import digest
from wirebroker.coordinator.quotas.quota_entity import ClientQuotas, applied_quota

if TYPE_CHECKING:
    from collections.abc import Callable

# A cached client takes up to 1 KiB, a meter up to 2 KiB.
_MOST_CLIENTS: Final = 10_000
_MOST_METERS: Final = 10_000
_IDLE_MS: Final = 3_600_000
# Of user and client id together; longer names are replaced by a digest.
_LONGEST_NAMES: Final = 512


class Meter(Protocol):
    """A meter."""

    last_ms: float


MeterT = TypeVar("MeterT", bound=Meter)
Owner = tuple[str, str]


class SharedMeters(Generic[MeterT]):
    """The meters for one quota key, such as producer_byte_rate."""

    __slots__ = ("_applied", "_key", "_make", "_meters", "_quotas")

    def __init__(self, key: str, make: Callable[[], MeterT]) -> None:
        self._key = key
        self._make = make
        self._quotas: ClientQuotas = {}
        # By user and client id: the owner of the meter, and the limit; None: no quota.
        self._applied: dict[Owner, tuple[Owner, float] | None] = {}
        # Least recently used first.
        self._meters: OrderedDict[Owner, MeterT] = OrderedDict()

    def follow(self, quotas: ClientQuotas) -> None:
        """Use other quotas."""
        if quotas is not self._quotas:
            self._quotas = quotas
            self._applied.clear()

    def find(self, user: str, client_id: str, now_ms: float) -> tuple[MeterT, float] | None:
        """Return a client's meter and limit, if a quota applies."""
        client = user, client_id
        if len(user) + len(client_id) > _LONGEST_NAMES:
            client = _shortened(client)
        if client in self._applied:
            applied = self._applied[client]
        else:
            applied = self._applied[client] = self._look_up(user, client_id)
        if applied is None:
            return None
        owner, limit = applied
        meter = self._meters.get(owner)
        if meter is None:
            self._make_room(now_ms)
            meter = self._meters[owner] = self._make()
        else:
            self._meters.move_to_end(owner)
        return meter, limit

    def recent(self, most: int) -> list[tuple[Owner, MeterT, float | None]]:
        """Return the most recently used meters with their owners and limits.

        A limit is None if no client has used the meter since the quotas changed.
        """
        limits = {applied[0]: applied[1] for applied in self._applied.values() if applied}
        return [
            (owner, meter, limits.get(owner))
            for owner, meter in islice(reversed(self._meters.items()), most)
        ]

    def _look_up(self, user: str, client_id: str) -> tuple[Owner, float] | None:
        quota = applied_quota(self._quotas, self._key, user=user, client_id=client_id)
        if len(self._applied) >= _MOST_CLIENTS:
            self._applied.clear()
        if quota is None:
            return None
        owner = quota.user, quota.client_id
        is_long = sum(map(len, owner)) > _LONGEST_NAMES
        return (_shortened(owner) if is_long else owner), quota.limit

    def _make_room(self, now_ms: float) -> None:
        meters = self._meters
        while meters:
            oldest = next(iter(meters))
            is_idle = meters[oldest].last_ms < now_ms - _IDLE_MS
            if not is_idle and len(meters) < _MOST_METERS:
                return
            del meters[oldest]


def _shortened(owner: Owner) -> Owner:
    """Replace long names by digests."""
    user, client_id = (
        digest("sha256", name.encode(errors="surrogatepass")).hex() if name else ""
        for name in owner
    )
    return user, client_id
