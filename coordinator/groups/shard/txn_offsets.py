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

    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.shard.shard import GroupShard


# First version with GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319).
_FIRST_GROUP_ERRORS_VERSION: Final = 6


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
            STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    body = request.body
    group = shard.groups.get(body.group_id)
    has_group_errors = request.version >= _FIRST_GROUP_ERRORS_VERSION
    if group is not None:
        _check_member(group, request, has_stale_epoch=has_group_errors)
    elif body.generation_id_or_member_epoch >= 0:
        code = ErrorCode.GROUP_ID_NOT_FOUND if has_group_errors else ErrorCode.ILLEGAL_GENERATION
        raise KafkaError(code)
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


def _check_member(group: Group, request: TxnCommit, *, has_stale_epoch: bool) -> None:
    try:
        group.check_transactional_commit(request)
    except KafkaError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH and not has_stale_epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from None
        raise
