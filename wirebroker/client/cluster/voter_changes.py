"""Changes of the voters (KIP-853), checked against the quorum before they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.text import counted
from wirebroker.client.cluster.quorum import AddedVoter, quorum_of
from wirebroker.client.cluster.voter_states import has_dynamic_voters, is_silent, voters_of
from wirebroker.client.errors import ClientError
from wirebroker.config.listeners.listeners import Address

if TYPE_CHECKING:
    from wirebroker.client.cluster.quorum import DescribedQuorum, QuorumReplica
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.net.client.settings import PeerAddress

_LISTENER: Final = "CONTROLLER"


class VoterChange(NamedTuple):
    """A change of the voters.

    Attributes:
        voter: The added or removed one; a removed one's endpoints are not needed.
        voters_after: The node ids after the change.
        sentence: What the change means.
    """

    voter: AddedVoter
    voters_after: list[int]
    sentence: str


async def planned_addition(client: KafkaClient, node_id: int, address: PeerAddress) -> VoterChange:
    """Return the addition of a running controller; its directory id is known to the leader.

    Raises:
        ClientError: The controller does not follow the leader, or the voters cannot be changed.
    """
    quorum = await quorum_of(client)
    voters = voters_of(quorum)
    if node_id in voters.ids:
        raise ClientError(f"controller {node_id} is a voter already")
    _check_dynamic(quorum)
    observer = _observer(quorum, node_id)
    if observer is None:
        raise ClientError(
            f"controller {node_id} does not follow the quorum's leader: start it, with"
            " controller.quorum.bootstrap.servers, and wait until `wirebroker quorum` lists it"
        )
    endpoint = Address(address.host, address.port)
    voter = AddedVoter(node_id, observer.directory_id, {_listener_name(quorum): endpoint})
    return _change(voter, sorted([*voters.ids, node_id]), voters.ids)


async def planned_removal(client: KafkaClient, node_id: int) -> VoterChange:
    """Return the removal of a voter.

    Raises:
        ClientError: It is not a voter or the only one, or the voters cannot be changed.
    """
    quorum = await quorum_of(client)
    ids = voters_of(quorum).ids
    voter = _voter(quorum, node_id)
    if voter is None:
        raise ClientError(
            f"controller {node_id} is not a voter; the voters are {', '.join(map(str, ids))}"
        )
    _check_dynamic(quorum)
    if len(ids) == 1:
        raise ClientError(f"controller {node_id} is the only voter: add another one first")
    remaining = [voter_id for voter_id in ids if voter_id != node_id]
    return _change(AddedVoter(node_id, voter.directory_id, {}), remaining, ids)


def _change(voter: AddedVoter, after: list[int], before: list[int]) -> VoterChange:
    tolerated = (len(after) - 1) // 2
    sentence = (
        f"voters {', '.join(map(str, before))} -> {', '.join(map(str, after))}:"
        f" {counted(len(after) // 2 + 1, 'voter')} of {len(after)} needed, {tolerated} may fail"
    )
    return VoterChange(voter, after, sentence)


def _check_dynamic(quorum: DescribedQuorum) -> None:
    if not has_dynamic_voters(quorum):
        raise ClientError(
            "the voters of this cluster are static (kraft.version 0): run `wirebroker features"
            " upgrade kraft.version=1` first"
        )


def _voter(quorum: DescribedQuorum, node_id: int) -> QuorumReplica | None:
    for replica in quorum.replicas:
        if replica.is_voter and replica.node_id == node_id:
            return replica
    return None


def _observer(quorum: DescribedQuorum, node_id: int) -> QuorumReplica | None:
    """Return the observer that fetches; its former directories are listed for minutes."""
    for replica in quorum.replicas:
        if replica.node_id == node_id and not is_silent(replica, quorum):
            return replica
    return None


def _listener_name(quorum: DescribedQuorum) -> str:
    """Return the name of the controllers' listener, by which they find each other."""
    for endpoint in quorum.endpoints.get(quorum.leader_id, ()):
        return endpoint.partition("://")[0]
    return _LISTENER
