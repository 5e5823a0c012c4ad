"""A client that pushes metrics: its subscription, and which of its requests are refused.

Source: Kafka's ClientMetricsInstance and ClientMetricsManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.checksum import crc32c
from wirebroker.codecs.records.codec import Codec
from wirebroker.config.client_metrics import DEFAULT_INTERVAL_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.coordinator.client_metrics.subscription import Subscription

ALL_METRICS: Final = "*"
_COMPRESSION_TYPES: Final = frozenset(map(int, Codec))
# GetTelemetrySubscriptions is not throttled after these: the client must know its subscription.
_NEEDS_SUBSCRIPTION: Final = frozenset(
    {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
)
# Without requests, a client counts as gone after three intervals, and at least this time.
_SHORTEST_LIFE_MS: Final = 60_000
_INTERVALS_OF_LIFE: Final = 3
_NEVER_MS: Final = -(1 << 60)
_INT32: Final = 1 << 32


class ClientConnection(Protocol):
    """A client's connection."""

    @property
    def has_ended(self) -> bool:
        """Whether the client has disconnected."""
        ...


class ClientSubscription(NamedTuple):
    """All that one client is subscribed to.

    Attributes:
        version: Number of changes of the broker's subscriptions that it considers.
    """

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int
    version: int


class Push(NamedTuple):
    """The fields of a PushTelemetry request that are checked."""

    subscription_id: int
    compression_type: int
    size: int
    is_terminating: bool


def client_subscription(
    instance_id: bytes, matching: Iterable[Subscription], version: int
) -> ClientSubscription:
    """Return the union of matching subscriptions, with the shortest interval."""
    names: set[str] = set()
    interval_ms = DEFAULT_INTERVAL_MS
    for subscription in matching:
        names.update(subscription.metrics)
        interval_ms = min(interval_ms, subscription.interval_ms)
    metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(sorted(names))
    text = f"[{', '.join(metrics)}]{interval_ms}"
    subscription_id = crc32c(text.encode()) ^ _hash_of(instance_id)
    if subscription_id >= _INT32 // 2:
        subscription_id -= _INT32
    return ClientSubscription(subscription_id, metrics, interval_ms, version)


def _hash_of(uuid: bytes) -> int:
    """Return the hash of Java's Uuid, without a sign."""
    words = (int.from_bytes(uuid[start : start + 4]) for start in range(0, len(uuid), 4))
    value = 0
    for word in words:
        value ^= word
    return value


class ClientInstance:
    """One client.

    Attributes:
        instance_id: The id that it keeps for its life.
        attributes: What subscriptions are matched with, also labels of its metrics.
        owner: The connection with whose end the client is gone.
        last_used_ms: Time of its last request.
    """

    __slots__ = (
        "_is_terminating",
        "_last_error",
        "_last_get_ms",
        "_last_push_ms",
        "attributes",
        "instance_id",
        "last_used_ms",
        "owner",
        "subscription",
    )

    def __init__(
        self,
        instance_id: bytes,
        attributes: Mapping[str, str | None],
        subscription: ClientSubscription,
        owner: ClientConnection,
        now_ms: int,
    ) -> None:
        self.instance_id = instance_id
        self.attributes = attributes
        self.subscription = subscription
        self.owner = owner
        self.last_used_ms = now_ms
        self._last_get_ms = self._last_push_ms = _NEVER_MS
        self._is_terminating = False
        self._last_error = ErrorCode.NONE

    def is_gone(self, now_ms: int) -> bool:
        """Return whether it has disconnected, or has sent nothing for a long time."""
        life_ms = max(_SHORTEST_LIFE_MS, _INTERVALS_OF_LIFE * self.subscription.interval_ms)
        return self.owner.has_ended or now_ms - self.last_used_ms >= life_ms

    def get(self, now_ms: int) -> ErrorCode:
        """Check a GetTelemetrySubscriptions request."""
        last_ms = max(self._last_get_ms, self._last_push_ms)
        if now_ms - last_ms >= self.subscription.interval_ms:
            self._last_get_ms = now_ms
        elif self._last_error not in _NEEDS_SUBSCRIPTION:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        self._last_error = ErrorCode.NONE
        return ErrorCode.NONE

    def push(self, push: Push, now_ms: int, most_bytes: int) -> ErrorCode:
        """Check a PushTelemetry request."""
        error = self._last_error = self._push_error(push, now_ms, most_bytes)
        self._is_terminating = push.is_terminating
        return error

    def failed(self, error: ErrorCode) -> None:
        """Note that the last push could not be read."""
        self._last_error = error

    def _push_error(self, push: Push, now_ms: int, most_bytes: int) -> ErrorCode:
        if self._is_terminating:
            return ErrorCode.INVALID_REQUEST
        since_ms = now_ms - self._last_push_ms
        is_due = self._last_get_ms > self._last_push_ms or since_ms >= self.subscription.interval_ms
        if is_due:
            self._last_push_ms = now_ms
        elif not push.is_terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if push.subscription_id != self.subscription.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if push.compression_type not in _COMPRESSION_TYPES:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.TELEMETRY_TOO_LARGE if push.size > most_bytes else ErrorCode.NONE
