"""The quotas of users and clients, applied to requests.

    frame ──► begin ──► handler ──► settle ──► throttle_time_ms in the response, connection muted

While any quotas exist, each request has a charge, which is settled with the response. The response
is sent immediately, but the connection is not read for the throttle time, so that clients that
ignore it are throttled as well. README.md lists the charges.

Request time is the percentage of one event loop that a request and its task have used, at most 100;
in Kafka it is that of all threads.

Source: Kafka's ClientQuotaManager, ClientRequestQuotaManager, RequestHandlerHelper, KafkaApis.
"""

from __future__ import annotations

from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.coordinator.quotas.quota_entity import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from wirebroker.coordinator.quotas.sampled_rate import SampledRate
from wirebroker.coordinator.quotas.shared_meters import SharedMeters
from wirebroker.quotas.throttle_field import write_throttle_time
from wirebroker.request.session import NO_CLIENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas as QuotasOfAll
    from wirebroker.coordinator.quotas.shared_meters import Owner
    from wirebroker.request.request import Piece, Request
    from wirebroker.request.session import Session

_OF_REQUESTS: Final = frozenset(
    {PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE}
)
# Sent by brokers for the cluster.
_EXEMPT: Final = frozenset({ApiKey.WRITE_TXN_MARKERS})
# A partition's fields in a response, without records.
_RESULT_BYTES: Final = 48
_PERCENT: Final = 100.0


class QuotaUsage(NamedTuple):
    """The use of a quota on this broker by the clients that share it; an empty name matches any.

    Attributes:
        per_second: Bytes, or percent of the event loop.
        throttle_ms: The throttle time that a request would now get.
    """

    user: str
    client_id: str
    per_second: float
    throttle_ms: int


class ClientRates:
    """The clients' rates under one quota, and their throttle times."""

    __slots__ = ("_longest_ms", "_meters", "_window_s", "throttled_count", "throttled_ms")

    def __init__(self, key: str, *, samples: int, sample_s: int, is_bounded: bool = False) -> None:
        """Create rates without quotas; `is_bounded` limits throttle times to one sample."""
        make = partial(SampledRate, samples=samples, sample_ms=sample_s * 1000)
        self._meters: SharedMeters[SampledRate] = SharedMeters(key, make)
        self._window_s = max(1, samples - 1) * sample_s
        self._longest_ms = sample_s * 1000 if is_bounded else None
        self.throttled_ms = 0
        self.throttled_count = 0

    def follow(self, quotas: QuotasOfAll) -> None:
        """Apply new quotas."""
        self._meters.follow(quotas)

    def count(self, owner: Owner, amount: float, now_ms: float) -> int:
        """Count a client's usage; return its throttle time."""
        meter = self._meters.find(*owner, now_ms)
        if meter is None:
            return 0
        rate, limit = meter
        rate.count(amount, now_ms)
        return self._bounded(rate.delay_ms(limit, now_ms))

    def take_back(self, owner: Owner, amount: float, now_ms: float) -> None:
        """Undo a count of the same time."""
        meter = self._meters.find(*owner, now_ms)
        if meter is not None:
            meter[0].count(-amount, now_ms)

    def delay_ms(self, owner: Owner, now_ms: float) -> int:
        """Return a client's throttle time."""
        meter = self._meters.find(*owner, now_ms)
        return 0 if meter is None else self._bounded(meter[0].delay_ms(meter[1], now_ms))

    def max_burst(self, owner: Owner, now_ms: float) -> float:
        """Return how much an idle client may use immediately."""
        meter = self._meters.find(*owner, now_ms)
        # NaN, which Kafka accepts as a limit, never throttles.
        if meter is None or isnan(meter[1]):
            return float("inf")
        return max(0.0, meter[1]) * self._window_s

    def usages(self, now_ms: float, most: int) -> Iterator[QuotaUsage]:
        """Yield the use of quotas by the most recently active clients."""
        for (user, client_id), meter, limit in self._meters.recent(most):
            throttle_ms = 0 if limit is None else self._bounded(meter.delay_ms(limit, now_ms))
            yield QuotaUsage(user, client_id, meter.per_second(now_ms), throttle_ms)

    def held_up(self, throttle_ms: int) -> None:
        """Count a throttled request."""
        self.throttled_ms += throttle_ms
        self.throttled_count += 1

    def _bounded(self, delay_ms: int) -> int:
        return delay_ms if self._longest_ms is None else min(delay_ms, self._longest_ms)


class ClientQuotas:
    """The quotas of one broker's clients; `has_quotas` if any concern requests."""

    __slots__ = ("_clock", "fetched", "has_quotas", "produced", "request_time")

    def __init__(self, config: Config, clock: Clock) -> None:
        samples = config.int("quota.window.num")
        sample_s = config.int("quota.window.size.seconds")
        self._clock = clock
        self.has_quotas = False
        self.produced = ClientRates(PRODUCER_BYTE_RATE, samples=samples, sample_s=sample_s)
        self.fetched = ClientRates(CONSUMER_BYTE_RATE, samples=samples, sample_s=sample_s)
        self.request_time = ClientRates(
            REQUEST_PERCENTAGE, samples=samples, sample_s=sample_s, is_bounded=True
        )

    def follow(self, quotas: QuotasOfAll) -> None:
        """Apply new quotas; measurements are kept."""
        self.has_quotas = any(not _OF_REQUESTS.isdisjoint(limits) for limits in quotas.values())
        for rates in (self.produced, self.fetched, self.request_time):
            rates.follow(quotas)

    def by_name(self) -> dict[str, ClientRates]:
        """Return the rates by Kafka's quota type names."""
        return {"Produce": self.produced, "Fetch": self.fetched, "Request": self.request_time}

    def begin(
        self, session: Session, key: int, version: int, client_id: str | None, frame_bytes: int
    ) -> Charge:
        """Return the charge for a request that begins."""
        return Charge(self, session, ApiKey(key), version, client_id or "", frame_bytes)

    def monotonic_s(self) -> float:
        """Return the monotonic time."""
        return self._clock.monotonic()

    def max_fetch_bytes(self, request: Request) -> int:
        """Return how many bytes a Fetch may return."""
        limit = self.fetched.max_burst(_owner(request), self._clock.monotonic() * 1000)
        return int(min(limit, 2**31 - 1))

    def is_too_much(self, request: Request, *, records_bytes: int, partitions: int) -> bool:
        """Charge a consumer for a response; return whether an empty one must be sent instead.

        The throttle time is stored in the request's session.
        """
        owner = _owner(request)
        now_ms = self._clock.monotonic() * 1000
        size = records_bytes + partitions * _RESULT_BYTES
        throttle_ms = self.fetched.count(owner, size, now_ms)
        if not throttle_ms and not self.request_time.delay_ms(owner, now_ms):
            return False
        # An unsent response is not charged.
        self.fetched.take_back(owner, size, now_ms)
        if throttle_ms:
            self.fetched.held_up(throttle_ms)
            request.session.throttle_ms = throttle_ms
        return True


class Charge:
    """The charge for one request."""

    __slots__ = (
        "_began_s",
        "_client_id",
        "_frame_bytes",
        "_is_exempt",
        "_key",
        "_quotas",
        "_ran_s",
        "_session",
        "_version",
    )

    def __init__(  # noqa: PLR0917 - one per request, as in request.py
        self,
        quotas: ClientQuotas,
        session: Session,
        key: ApiKey,
        version: int,
        client_id: str,
        frame_bytes: int,
    ) -> None:
        self._quotas = quotas
        self._session = session
        self._key = key
        self._version = version
        self._client_id = client_id
        self._frame_bytes = frame_bytes
        self._is_exempt = key in _EXEMPT
        self._ran_s = 0.0
        self._began_s = quotas.monotonic_s()

    def wait(self, awaitable: Awaitable[Any]) -> Awaitable[Any]:
        """Call `later`; return an awaitable whose running time is charged."""
        self.later()
        send = getattr(awaitable, "send", None)
        return awaitable if send is None else _Counted(self, awaitable, self._quotas.monotonic_s)

    def later(self) -> None:
        """Mark the response as deferred, which stops the time."""
        self._ran_s += self._quotas.monotonic_s() - self._began_s
        self._began_s = -1.0

    def ran(self, seconds: float) -> None:
        """Add running time of the request's task."""
        self._ran_s += seconds

    def settle(self, answer: list[Piece] | None) -> list[Piece] | None:
        """Charge a request, and write the throttle time into its response."""
        session, quotas = self._session, self._quotas
        now_s = quotas.monotonic_s()
        if self._began_s >= 0:
            self._ran_s += now_s - self._began_s
        told_ms, session.throttle_ms = session.throttle_ms, 0
        if told_ms == NO_CLIENT or self._is_exempt:
            return answer
        owner = session.principal.name, self._client_id
        now_ms = now_s * 1000
        sent_ms = taken_ms = 0
        if self._key is ApiKey.PRODUCE:
            sent_ms = quotas.produced.count(owner, self._frame_bytes, now_ms)
        if answer is not None:
            taken_ms = quotas.request_time.count(owner, self._ran_s * _PERCENT, now_ms)
        throttle_ms = max(told_ms, sent_ms, taken_ms)
        if not throttle_ms:
            return answer
        if throttle_ms == sent_ms:
            quotas.produced.held_up(sent_ms)
        elif throttle_ms == taken_ms:
            quotas.request_time.held_up(taken_ms)
        if answer is not None and self._version <= SPOKEN_VERSIONS[self._key].max_version:
            write_throttle_time(answer, self._key, self._version, throttle_ms)
        session.mute(throttle_ms / 1000)
        return answer


class _Counted:
    __slots__ = ("_awaitable", "_charge", "_monotonic_s")

    def __init__(
        self, charge: Charge, awaitable: Awaitable[Any], monotonic_s: Callable[[], float]
    ) -> None:
        self._charge = charge
        self._awaitable = awaitable
        self._monotonic_s = monotonic_s

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaitable.__await__()
        error: BaseException | None = None
        sent: Any = None
        while True:
            began_s = self._monotonic_s()
            try:
                waited: Any = steps.send(sent) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            finally:
                self._charge.ran(self._monotonic_s() - began_s)
                # This frame is part of the error's traceback and must not reference it.
                sent = error = None
            try:
                sent = yield waited
            except BaseException as thrown:  # noqa: BLE001 - passes on a cancellation
                error = thrown


def _owner(request: Request) -> Owner:
    return request.session.principal.name, request.client_id or ""
