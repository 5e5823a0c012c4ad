"""The subscriptions in force, the clients of this broker, and their requests (KIP-714).

Source: Kafka's ClientMetricsManager.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import Slices, finish
from wirebroker.base.log_bound import about_client_metrics
from wirebroker.client_metrics.payload import Payload, points_of
from wirebroker.client_metrics.series import ClientSeries
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.codecs.records.codec import Codec
from wirebroker.coordinator.client_metrics.client_instance import (
    ClientConnection,
    ClientInstance,
    Push,
    client_subscription,
)
from wirebroker.coordinator.client_metrics.subscription import Subscription, subscription_of
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.request.request import Request

logger = logging.getLogger(__name__)

_MOST_CLIENTS: Final = 16_384
# A client has one id. Without this bound, one connection could replace the clients of all others.
_MOST_OF_ONE_CONNECTION: Final = 16
# Each new client makes room for itself and for one more.
_CHECKED_OLDEST: Final = 2
# A client id can have 32 KiB, in each of its series.
_LONGEST_ATTRIBUTE: Final = 200
# Subscriptions compared with a client per step.
_STEP: Final = 32
_ZERO_ID: Final = bytes(16)
# Kafka's reserved ids.
RESERVED_IDS: Final = frozenset({_ZERO_ID, bytes(15) + b"\x01"})
# What the labels of a client's series say of it.
_LABELS: Final = ("client_id", "client_instance_id", "client_software_name")


class ClientMetrics:
    """All that this broker knows of the metrics of its clients.

    Attributes:
        series: What the clients have pushed.
        max_bytes: telemetry.max.bytes.
        unknown_subscriptions: Number of pushes with another subscription id.
        throttled: Number of requests that came too early.
        unreadable: Number of pushes that could not be read.
    """

    __slots__ = (
        "_by_owner",
        "_clients",
        "_clock",
        "_subscriptions",
        "_version",
        "max_bytes",
        "series",
        "throttled",
        "unknown_subscriptions",
        "unreadable",
    )

    def __init__(self, config: Config, clock: Clock) -> None:
        self.max_bytes = config.int("telemetry.max.bytes")
        self.series = ClientSeries(config.int("wirebroker.client.metrics.series"))
        self._clock = clock
        self._subscriptions: dict[str, Subscription] = {}
        self._version = 0
        # The least recently used first.
        self._clients: OrderedDict[bytes, ClientInstance] = OrderedDict()
        # The same by connection, the oldest first.
        self._by_owner: dict[ClientConnection, dict[bytes, ClientInstance]] = {}
        self.unknown_subscriptions = self.throttled = self.unreadable = 0

    def __len__(self) -> int:
        return len(self._clients)

    def load(self, image: ClusterImage) -> None:
        """Use the configs of an image, before any client is served."""
        finish(self._use(image.configs, image))

    async def apply(self, change: ImageChange, image: ClusterImage) -> None:
        """Follow changes of the configs."""
        await Slices(self._clock).run(self._use(change.configs, image))

    def _use(self, resources: Iterable[tuple[int, str]], image: ClusterImage) -> Steps[None]:
        for kind, name in resources:
            if kind != ResourceType.CLIENT_METRICS:
                continue
            yield
            configs = image.config(kind, name)
            subscription = _usable(name, configs) if configs else None
            if subscription is not None:
                self._subscriptions[name] = subscription
                self._version += 1
            elif self._subscriptions.pop(name, None) is not None:
                self._version += 1

    # -- requests ----------------------------------------------------------------------------

    def get(self, request: Request, instance_id: bytes) -> Steps[ClientInstance | ErrorCode]:
        """Return the client with its subscription, or why it is refused."""
        if instance_id == _ZERO_ID:
            instance_id = random_uuid()
        client = yield from self._client(request, instance_id)
        return self._noted(client.get(self._clock.now_ms())) or client

    def begin_push(
        self, request: Request, instance_id: bytes, push: Push
    ) -> Steps[ClientInstance | ErrorCode]:
        """Return the client whose push is to be read, or why it is refused."""
        if instance_id in RESERVED_IDS:
            return ErrorCode.INVALID_REQUEST
        client = yield from self._client(request, instance_id)
        return self._noted(client.push(push, self._clock.now_ms(), self.max_bytes)) or client

    async def read_push(
        self, client: ClientInstance, compression_type: int, data: bytes, slices: Slices
    ) -> ErrorCode:
        """Store a push; return INVALID_RECORD if it cannot be read."""
        try:
            points = await points_of(Payload(Codec(compression_type), data, self.max_bytes))
        except KafkaError as error:
            client.failed(error.code)
            self.unreadable += 1
            return error.code
        if self._clients.get(client.instance_id) is client:  # it may have left
            labels = {name: client.attributes[name] or "" for name in _LABELS}
            await slices.run(self.series.record(client.instance_id, labels, points))
            if self._clients.get(client.instance_id) is not client:
                self.series.remove(client.instance_id)
        return ErrorCode.NONE

    def _noted(self, error: ErrorCode) -> ErrorCode:
        self.throttled += error is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        self.unknown_subscriptions += error is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        return error

    # -- clients -----------------------------------------------------------------------------

    def remove_gone(self) -> Steps[None]:
        """Remove the clients that have left, with their series."""
        for client in list(self._clients.values()):
            self._remove_if_gone(client)
            yield

    def _client(self, request: Request, instance_id: bytes) -> Steps[ClientInstance]:
        """Return the client of a request: a new one after a change of subscriptions."""
        now_ms = self._clock.now_ms()
        known = self._clients.get(instance_id)
        if known is not None and self._remove_if_gone(known):
            known = None
        if known is None or known.subscription.version < self._version:
            return (yield from self._new_client(request, instance_id, known, now_ms))
        known.last_used_ms = now_ms
        self._clients.move_to_end(instance_id)
        return known

    def _new_client(
        self, request: Request, instance_id: bytes, known: ClientInstance | None, now_ms: int
    ) -> Steps[ClientInstance]:
        attributes = _attributes(request, instance_id) if known is None else known.attributes
        version = self._version
        matching: list[Subscription] = []
        for count, subscription in enumerate(list(self._subscriptions.values()), 1):
            if subscription.matches(attributes):
                matching.append(subscription)
            if count % _STEP == 0:
                yield
        subscription_of_client = client_subscription(instance_id, matching, version)
        client = ClientInstance(
            instance_id, attributes, subscription_of_client, request.session, now_ms
        )
        for oldest in list(_first(self._clients, _CHECKED_OLDEST)):
            if len(self._clients) >= _MOST_CLIENTS:
                self._remove(oldest)
            else:
                self._remove_if_gone(oldest)
        self._put(client)
        return client

    def _put(self, client: ClientInstance) -> None:
        replaced = self._clients.get(client.instance_id)
        if replaced is not None:
            self._forget_owner(replaced)
        self._clients[client.instance_id] = client
        self._clients.move_to_end(client.instance_id)
        of_owner = self._by_owner.setdefault(client.owner, {})
        of_owner[client.instance_id] = client
        if len(of_owner) > _MOST_OF_ONE_CONNECTION:
            self._remove(next(iter(of_owner.values())))

    def _remove_if_gone(self, client: ClientInstance) -> bool:
        is_gone = client.is_gone(self._clock.now_ms())
        if is_gone:
            self._remove(client)
        return is_gone

    def _remove(self, client: ClientInstance) -> None:
        if self._clients.get(client.instance_id) is client:
            del self._clients[client.instance_id]
            self._forget_owner(client)
            self.series.remove(client.instance_id)

    def _forget_owner(self, client: ClientInstance) -> None:
        of_owner = self._by_owner.get(client.owner, {})
        of_owner.pop(client.instance_id, None)
        if not of_owner:
            self._by_owner.pop(client.owner, None)


def _first(clients: Mapping[bytes, ClientInstance], count: int) -> Iterator[ClientInstance]:
    for _, client in zip(range(count), clients.values(), strict=False):
        yield client


def _usable(name: str, configs: Mapping[str, str]) -> Subscription | None:
    try:
        return subscription_of(name, configs)
    except KafkaError as error:
        problem = str(error)
    logger.error("ignoring client metrics %s: %s", name, problem, extra=about_client_metrics(name))
    return None


def _attributes(request: Request, instance_id: bytes) -> dict[str, str | None]:
    session = request.session
    host, _, port = session.peer.rpartition(":")
    attributes = {
        "client_instance_id": uuid_text(instance_id),
        "client_id": request.client_id,
        "client_software_name": session.client_software_name,
        "client_software_version": session.client_software_version,
        "client_source_address": host.strip("[]"),
        "client_source_port": port,
    }
    return {
        name: None if text is None else text[:_LONGEST_ATTRIBUTE]
        for name, text in attributes.items()
    }
