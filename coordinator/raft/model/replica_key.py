"""Names of replicas of the metadata log, and where to send requests.

Source: Kafka's ReplicaKey and Endpoints (KIP-853).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import VoterEndpoint

# A replica's listeners; none if they are unknown.
Endpoints: TypeAlias = tuple[VoterEndpoint, ...]


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


def destination_of(node_id: int, endpoints: Endpoints, listener_name: str) -> Destination | None:
    """Return the node's address on a listener, if it has one."""
    for endpoint in endpoints:
        if endpoint.name == listener_name:
            return Destination(node_id, endpoint.host, endpoint.port)
    return None
