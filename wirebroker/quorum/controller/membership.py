"""What makes a node a controller of one quorum: its directory, its listeners, the other voters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.codecs.records.control import Voter, VoterEndpoint
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.coordinator.raft.protocol.messages import RequestFailure
from wirebroker.coordinator.raft.states.replica_core import Identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.coordinator.raft.model.replica_key import Destination, Endpoints
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse
    from wirebroker.coordinator.raft.states.request_manager import RandomSource
    from wirebroker.quorum.raft.raft_channel import RaftTransport


_CANNOT_GROW: Final = (
    "This node is configured as the only voter. Name its controller listener in "
    "controller.quorum.bootstrap.servers, remove controller.quorum.voters, and restart it."
)


class NoTransport:
    """The connections of a node that reaches no other voters."""

    async def request(self, destination: Destination, request: RaftRequest) -> RaftResponse:
        """See RaftTransport."""
        del destination, request
        return RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)

    def outcome(self, node_id: int) -> str:
        """See RaftTransport."""
        return f"node {node_id} cannot be reached without a controller listener"

    def abort(self) -> None:
        """See RaftTransport."""


class NoRandom:
    """The random numbers of a node that never competes with another one."""

    def randrange(self, stop: int, /) -> int:
        """See RandomSource."""
        del stop
        return 0


class Membership(NamedTuple):
    """A controller's place in its quorum.

    Attributes:
        directory_id: The id of the metadata log's directory.
        endpoints: The listeners for other nodes; the first is that of the quorum.
        static_voters: The voters while the log contains none (kraft.version 0).
        bootstrap: Nodes that may know the leader.
        listener_name: The name of the voters' listeners.
        may_grow: Whether voters may be added. The broker of a node that is configured as the only
            voter would not find another leader.
    """

    directory_id: bytes
    endpoints: Sequence[Endpoint]
    static_voters: VoterSet
    bootstrap: Sequence[Destination]
    listener_name: str
    transport: RaftTransport
    random: RandomSource
    may_grow: bool = True

    def identity(self, node_id: int, cluster_id: str) -> Identity:
        """Return this node as the raft machine sees it."""
        return Identity(
            key=ReplicaKey(node_id, self.directory_id),
            cluster_id=cluster_id,
            endpoints=voter_endpoints(self.endpoints),
            listener_name=self.listener_name,
            bootstrap=self.bootstrap,
        )

    def check_may_grow(self) -> None:
        """Check that a voter may be added.

        Raises:
            KafkaError: INVALID_REQUEST.
        """
        if not self.may_grow:
            raise KafkaError(ErrorCode.INVALID_REQUEST, _CANNOT_GROW)


def voter_endpoints(endpoints: Sequence[Endpoint]) -> Endpoints:
    """Return listeners as the quorum stores them."""
    return tuple(VoterEndpoint(item.name, item.host, item.port) for item in endpoints)


def alone(node_id: int, directory_id: bytes, endpoints: Sequence[Endpoint] = ()) -> Membership:
    """Return the place of a node that is its quorum's only voter."""
    voter = Voter(node_id, ZERO_UUID, voter_endpoints(endpoints), 0, 1)
    name = endpoints[0].name if endpoints else "CONTROLLER"
    return Membership(
        directory_id, endpoints, VoterSet([voter]), (), name, NoTransport(), NoRandom()
    )
