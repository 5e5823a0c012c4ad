"""DescribeQuorum: the leader's view of voters and observers.

Source: Kafka's KafkaRaftClient.handleDescribeQuorumRequest (KIP-642, KIP-836, KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.raft.protocol.messages import DescribedReplica, DescribeQuorumResponse
from wirebroker.coordinator.raft.states.leader_state import LeaderState

if TYPE_CHECKING:
    from wirebroker.coordinator.raft.model.replica_progress import ReplicaProgress
    from wirebroker.coordinator.raft.states.replica_core import ReplicaCore


def handle_describe_request(core: ReplicaCore, token: object, now_ms: int) -> None:
    """Describe the quorum."""
    leader = core.state
    if not isinstance(leader, LeaderState):
        core.respond(token, DescribeQuorumResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return
    leader.forget_silent_observers(now_ms)
    own = DescribedReplica(core.key, leader.log_end_offset, now_ms, now_ms)
    observers = [_described(progress) for _, progress in sorted(leader.observers.items())]
    core.respond(
        token,
        DescribeQuorumResponse(
            ErrorCode.NONE,
            leader.leader_id,
            leader.epoch,
            -1 if leader.high_watermark is None else leader.high_watermark,
            voters=tuple(
                own._replace(key=voter.key) if voter.key.matches(core.key) else _described(voter)
                for voter in leader.voters.values()
            ),
            observers=tuple(observers if leader.is_voter else [own, *observers]),
            endpoints=tuple(
                (voter.voter_id, voter.endpoints) for voter in core.history.last_voters
            ),
        ),
    )


def _described(progress: ReplicaProgress) -> DescribedReplica:
    end_offset = -1 if progress.end_offset is None else progress.end_offset
    return DescribedReplica(
        progress.key, end_offset, progress.last_fetch_ms, progress.last_caught_up_ms
    )
