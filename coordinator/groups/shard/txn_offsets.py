"""TxnOffsetCommit: offsets that become effective when the transaction commits (KIP-447).

Clients before v3 do not name the member. A rebalance does not matter: the next owner of the
partitions waits for the transaction's end.

Source: Kafka's OffsetMetadataManager.commitTransactionalOffset, ClassicGroup.validateOffsetCommit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.shard.offsets import add_commits
from wirebroker.coordinator.outcome import Moment, Outcome, ProducerEpoch, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.coordinator.groups.shard.shard import GroupShard


# First version with GROUP_ID_NOT_FOUND (KIP-1319).
_FIRST_GROUP_NOT_FOUND_VERSION: Final = 6


class TxnCommit(NamedTuple):
    """A TxnOffsetCommit request, limited to existing partitions.

    `topics` has (name, topic id, partitions of the body) each.
    """

    body: Any
    version: int
    topics: Sequence[tuple[str, bytes, Sequence[Any]]]


def commit(shard: GroupShard, request: TxnCommit, token: Token, now: Moment) -> Outcome:
    """Handle a TxnOffsetCommit request.

    Raises:
        KafkaError: The error for every partition: ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND,
            UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    body = request.body
    group = shard.groups.get(body.group_id)
    if group is not None:
        group.check_transactional_commit(body)
    elif body.generation_id_or_member_epoch >= 0:
        is_new = request.version >= _FIRST_GROUP_NOT_FOUND_VERSION
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
    outcome = Outcome(producer=ProducerEpoch(body.producer_id, body.producer_epoch))
    answers: list[dict[str, Any]] = []
    for name, topic_id, partitions in request.topics:
        partition_results = add_commits(
            outcome,
            shard,
            body.group_id,
            name,
            partitions,
            wall_ms=now.wall_ms,
            topic_id=topic_id,
        )
        answers.append({"name": name, "topic_id": topic_id, "partitions": partition_results})
    if not outcome.records:
        shard.make_simple(body.group_id)
    outcome.answer(token, {"topics": answers})
    return outcome
