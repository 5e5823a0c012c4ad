"""Names of replicas of the metadata log, and where to send requests.

Source: Kafka's ReplicaKey and Endpoints (KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import VoterEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterable

# A replica's listeners; none if they are unknown.
Endpoints: TypeAlias = tuple[VoterEndpoint, ...]

# More listeners, or longer names and hosts, are refused: they would be stored in the log and
# repeated in responses.
_MAX_ENDPOINTS: Final = 100
_MAX_TEXT: Final = 1_000
_FIRST_BOOTSTRAP_ID: Final = -2


class ReplicaKey(NamedTuple):
    """A replica: the node and the directory that holds its log.

    A node whose disk was replaced is another replica, because its directory id is new. The id is
    ZERO_UUID if it is unknown: with static voters, and in requests before KIP-853.
    """

    replica_id: int
    directory_id: bytes = ZERO_UUID

    def matches(self, other: ReplicaKey) -> bool:
        """Return whether `other` may be this replica; an unknown directory here matches any."""
        if self.replica_id != other.replica_id:
            return False
        return self.directory_id in (ZERO_UUID, other.directory_id)


class Destination(NamedTuple):
    """A node to which requests are sent.

    Bootstrap servers have ids from -2 downwards, because their node ids are unknown.
    """

    node_id: int
    host: str
    port: int


def bootstrap_destinations(servers: Iterable[tuple[str, int]]) -> tuple[Destination, ...]:
    """Return where to send requests for the bootstrap servers at these addresses."""
    return tuple(
        Destination(_FIRST_BOOTSTRAP_ID - index, host, port)
        for index, (host, port) in enumerate(servers)
    )


def are_bounded(endpoints: Endpoints) -> bool:
    """Return whether the listeners that a peer states are few and short enough to be kept."""
    return len(endpoints) <= _MAX_ENDPOINTS and all(
        len(endpoint.name) <= _MAX_TEXT and len(endpoint.host) <= _MAX_TEXT
        for endpoint in endpoints
    )


def destination_of(node_id: int, endpoints: Endpoints, listener_name: str) -> Destination | None:
    """Return the node's address on a listener, if it has one."""
    for endpoint in endpoints:
        if endpoint.name == listener_name:
            return Destination(node_id, endpoint.host, endpoint.port)
    return None
