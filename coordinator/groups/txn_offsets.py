"""TxnOffsetCommit: offsets that count when the producer's transaction is committed (KIP-447).

The member that the producer works for is checked as for OffsetCommit, except that clients before
v3 do not say who that is, and that a rebalance is no obstacle: the next owner of the partitions
waits for the transaction's end.

Source: Kafka's OffsetMetadataManager.commitTransactionalOffset, ClassicGroup.validateOffsetCommit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.offsets import add_commits
from wirebroker.coordinator.outcome import Moment, Outcome, ProducerEpoch, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.groups.shard import GroupShard


class TxnCommit(NamedTuple):
    """A TxnOffsetCommit request, reduced to partitions that exist: (topic, its partitions)."""

    body: Any
    topics: Sequence[tuple[str, Sequence[Any]]]


def commit(shard: GroupShard, request: TxnCommit, token: Token, moment: Moment) -> Outcome:
    """Handle a TxnOffsetCommit request.

    Raises:
        KafkaError: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID: what every
            partition of the response says.
    """
    body = request.body
    group = shard.groups.get(body.group_id)
    if group is not None:
        group.check_transactional_commit(body)
    elif body.generation_id >= 0:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    outcome = Outcome(producer=ProducerEpoch(body.producer_id, body.producer_epoch))
    answers: list[dict[str, Any]] = []
    for name, partitions in request.topics:
        answered = add_commits(
            outcome, shard, body.group_id, name, partitions, wall_ms=moment.wall_ms
        )
        answers.append({"name": name, "partitions": answered})
    if not outcome.records:
        shard.make_simple(body.group_id)
    outcome.answer(token, {"topics": answers})
    return outcome
