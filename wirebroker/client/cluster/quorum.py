"""The quorum of controllers (KIP-642, KIP-836), and changes of its voters (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, UnservedError, check
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.settings import PeerAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.config.listeners.listeners import Address

_METADATA_TOPIC: Final = "__cluster_metadata"
_UNKNOWN_TIME: Final = -1
# Timeout for a controller's response, before the rest is shown without it.
_PATIENCE_S: Final = 5.0
# First version of AddRaftVoter with ack_when_committed.
_FIRST_WITH_ACK: Final = 1


class QuorumReplica(NamedTuple):
    """A node that has the metadata log; times are by the leader's clock, None if unknown.

    Attributes:
        lag: Records behind the leader.
        lag_ms: Time since it was caught up.
        directory_id: Its log directory; zeros if unknown.
        fetched_ms: Time of its last fetch.
    """

    node_id: int
    is_voter: bool
    end_offset: int
    lag: int
    lag_ms: int | None
    directory_id: bytes
    fetched_ms: int | None
    caught_up_ms: int | None


class DescribedQuorum(NamedTuple):
    """The leader, and the progress of the others.

    Attributes:
        replicas: Voters, then observers.
        now_ms: The leader's clock; None if unknown.
        endpoints: By node, such as `CONTROLLER://host:9093`.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    replicas: list[QuorumReplica]
    now_ms: int | None
    endpoints: dict[int, list[str]]


async def quorum_of(client: KafkaClient) -> DescribedQuorum:
    """Return the quorum.

    Raises:
        ClientError: The cluster has none (before KRaft).
    """
    topic = {"topic_name": _METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
    answer = await client.request_of_controller(ApiKey.DESCRIBE_QUORUM, {"topics": [topic]})
    failure = "the quorum cannot be described"
    check(answer.error_code, failure, getattr(answer, "error_message", None))
    (partition,) = answer.topics[0].partitions
    check(partition.error_code, failure, getattr(partition, "error_message", None))
    leader = _replica_of(partition, partition.leader_id)
    described_replicas = [
        _described_replica(replica, leader, is_voter=is_voter)
        for is_voter, replicas in ((True, partition.current_voters), (False, partition.observers))
        for replica in sorted(replicas, key=lambda replica: replica.replica_id)
    ]
    now_ms = _UNKNOWN_TIME if leader is None else leader.last_caught_up_timestamp
    return DescribedQuorum(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        described_replicas,
        _time_or_none(now_ms),
        {
            node.node_id: [
                f"{listener.name}://{PeerAddress(listener.host, listener.port)}"
                for listener in node.listeners
            ]
            for node in getattr(answer, "nodes", ())
        },
    )


async def quorum_with_short_timeout(client: KafkaClient) -> DescribedQuorum:
    """Return the quorum within 5 s."""
    return await quorum_of(client.within(min(client.timeout_s, _PATIENCE_S)))


class ActiveNode(NamedTuple):
    """The active controller (-1 if unknown), or the problem.

    Attributes:
        is_silent: Whether no controller responds, or the quorum has no leader.
        quorum: Its quorum; None if it is unknown, and before KRaft.
    """

    node_id: int
    problem: str | None = None
    is_silent: bool = False
    quorum: DescribedQuorum | None = None


async def controller_of(client: KafkaClient, controller_id: int) -> ActiveNode:
    """Return the active controller; with KRaft, Metadata names an arbitrary broker instead.

    Before KRaft it is `controller_id`, from Metadata.
    """
    try:
        quorum = await quorum_with_short_timeout(client)
    except UnservedError:
        return ActiveNode(controller_id)
    except ClientError as error:
        is_silent = has_no_leader(client, error) if client.uses_controllers else is_silence(error)
        return ActiveNode(-1, error.told or str(error), is_silent=is_silent)
    if quorum.leader_id < 0:
        return ActiveNode(-1, "the quorum has no leader", is_silent=True)
    return ActiveNode(quorum.leader_id, quorum=quorum)


def has_no_leader(client: KafkaClient, error: ClientError) -> bool:
    """Return whether a response to `quorum_of` means that the quorum has no leader.

    Without a response only one node failed: the leader, or the broker that forwards to it.
    """
    return error.code == ErrorCode.REQUEST_TIMED_OUT or (
        # An error of a broker says nothing about controllers.
        client.uses_controllers and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


def is_silence(error: ClientError) -> bool:
    """Return whether no controller responded, as far as a client of brokers knows."""
    silent = {0, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER}
    is_refused = error.code not in silent
    return not is_refused and not isinstance(error, UnservedError)


def _replica_of(partition: Any, node_id: int) -> Any:
    return next(
        (replica for replica in partition.current_voters if replica.replica_id == node_id), None
    )


def _described_replica(replica: Any, leader: Any, *, is_voter: bool) -> QuorumReplica:
    end = replica.log_end_offset if leader is None else leader.log_end_offset
    now_ms = _UNKNOWN_TIME if leader is None else leader.last_caught_up_timestamp
    caught_up_ms = replica.last_caught_up_timestamp
    is_told = _UNKNOWN_TIME not in {now_ms, caught_up_ms}
    return QuorumReplica(
        replica.replica_id,
        is_voter,
        replica.log_end_offset,
        max(0, end - replica.log_end_offset),
        max(0, now_ms - caught_up_ms) if is_told else None,
        getattr(replica, "replica_directory_id", bytes(16)),
        _time_or_none(replica.last_fetch_timestamp),
        _time_or_none(caught_up_ms),
    )


def _time_or_none(time_ms: int) -> int | None:
    return None if time_ms == _UNKNOWN_TIME else time_ms


class AddedVoter(NamedTuple):
    """A controller with its metadata directory and its listeners by name."""

    node_id: int
    directory_id: bytes
    endpoints: Mapping[str, Address]


async def add_voter(client: KafkaClient, voter: AddedVoter) -> None:
    """Make a controller a voter; return when that is committed."""
    listeners = [
        {"name": name, "host": endpoint.host, "port": endpoint.port}
        for name, endpoint in voter.endpoints.items()
    ]

    def body(version: int) -> dict[str, Any]:
        request = {
            "cluster_id": None,
            "timeout_ms": int(client.timeout_s * 1000),
            "voter_id": voter.node_id,
            "voter_directory_id": voter.directory_id,
            "listeners": listeners,
        }
        return request | ({"ack_when_committed": True} if version >= _FIRST_WITH_ACK else {})

    answer = await client.request_of_controller(ApiKey.ADD_RAFT_VOTER, body)
    check(answer.error_code, f"controller {voter.node_id} cannot be added", answer.error_message)


async def remove_voter(client: KafkaClient, node_id: int, directory_id: bytes) -> None:
    """Remove a controller from the voters."""
    body = {"cluster_id": None, "voter_id": node_id, "voter_directory_id": directory_id}
    answer = await client.request_of_controller(ApiKey.REMOVE_RAFT_VOTER, body)
    check(answer.error_code, f"controller {node_id} cannot be removed", answer.error_message)
