"""FindCoordinator: which node keeps a group, or a transactional id.

v1 key type and error message, v3 flexible, v4 several keys at once (KIP-699), v6 share groups
(KIP-932). The first one who asks makes the broker create `__consumer_offsets`, or
`__transaction_state`.

Source: Kafka's KafkaApis.handleFindCoordinatorRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.api.metadata import advertised
from wirebroker.api.registry import handles
from wirebroker.clock import begun, collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import uuid_from_text
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS, TRANSACTION_STATE
from wirebroker.handlers import Cost
from wirebroker.needs import CLUSTER_ACTION, DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.broker import Broker
    from wirebroker.clock import Steps
    from wirebroker.request import Request

GROUP, TRANSACTION, SHARE = 0, 1, 2

FIRST_BATCH_VERSION = 4
FIRST_SHARE_VERSION = 6

_MESSAGES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details."
    ),
}


class _Found(NamedTuple):
    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1

    def fields(self) -> dict[str, Any]:
        """Return what the response says of it."""
        return {
            "error_code": self.error,
            "node_id": self.node_id,
            "host": self.host,
            "port": self.port,
        }


_NOT_AVAILABLE: Final = _Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)


@handles(
    ApiKey.FIND_COORDINATOR,
    needs=(DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID, CLUSTER_ACTION),
    cost=Cost.SLICES,
)
def find_coordinator(
    broker: Broker, request: Request, body: Any
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Look up one coordinator, or several."""
    search = _Search(broker, request, body.key_type)
    if request.version < FIRST_BATCH_VERSION:
        found = search.find(body.key)
        return {"error_message": _MESSAGES.get(found.error, "NONE"), **found.fields()}
    return begun(_answer(search, body), broker.clock)


def _answer(search: _Search, body: Any) -> Steps[dict[str, Any]]:
    is_known = body.key_type in {GROUP, TRANSACTION, SHARE}
    message = "" if is_known else _MESSAGES[ErrorCode.INVALID_REQUEST]
    coordinators = yield from collected(
        {"key": key, "error_message": message, **search.find(key).fields()}
        for key in body.coordinator_keys
    )
    return {"coordinators": coordinators}


class _Search:
    """What the keys of one request have in common: their kind, and whom the client can reach."""

    __slots__ = ("_broker", "_key_type", "_reachable", "_request")

    def __init__(self, broker: Broker, request: Request, key_type: int) -> None:
        self._broker = broker
        self._request = request
        self._key_type = key_type
        self._reachable: dict[int, _Found] | None = None

    def find(self, key: str) -> _Found:
        """Return the node that keeps a key."""
        broker, key_type = self._broker, self._key_type
        if not _is_valid(self._request.version, key_type, key):
            return _Found(ErrorCode.INVALID_REQUEST)
        if key_type == SHARE:
            # Their coordinator comes with share groups.
            return _NOT_AVAILABLE
        is_group = key_type == GROUP
        coordinator = broker.groups if is_group else broker.transactions
        name = CONSUMER_OFFSETS if is_group else TRANSACTION_STATE
        topic = broker.metadata.image.topics.get(name)
        if topic is None:
            coordinator.create_topic()
            return _NOT_AVAILABLE
        partition = topic.partitions.get(coordinator.partition_for(key))
        found = None if partition is None else self._nodes().get(partition.leader)
        if found is None:
            return _NOT_AVAILABLE
        if is_group and found.node_id == broker.node_id:
            broker.groups.lookups.add(key, self._request.session, broker.clock.monotonic())
        return found

    def _nodes(self) -> dict[int, _Found]:
        if self._reachable is None:
            self._reachable = {
                node_id: _Found(ErrorCode.NONE, node_id, host, port)
                for node_id, host, port, _ in advertised(self._broker, self._request.session)
            }
        return self._reachable


def _is_valid(version: int, key_type: int, key: str) -> bool:
    if key_type == SHARE:
        return version >= FIRST_SHARE_VERSION and _is_share_key(key)
    return key_type in {GROUP, TRANSACTION}


def _is_share_key(key: str) -> bool:
    """Tell whether a key names a partition of a share group: group, topic id, partition."""
    match key.rstrip(":").split(":"):  # Java's split takes no notice of colons at the end
        case [group_id, topic_id, partition]:
            try:
                uuid_from_text(topic_id)
                int(partition)
            except ValueError:
                return False
            return bool(group_id.strip())
        case _:
            return False
