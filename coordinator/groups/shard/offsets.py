"""OffsetCommit, OffsetFetch and OffsetDelete.

Source: Kafka's OffsetMetadataManager; KIP-88, KIP-211, KIP-320, KIP-516 for topic ids.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - compiled tuples look for it
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wirebroker.codecs.coordinator_records import (
    NO_EXPIRY,
    NO_LEADER_EPOCH,
    CommittedOffset,
    CoordinatorRecord,
    group_prefix,
    offset_commit_record,
    partition_suffix,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.groups.shard.group_offsets import GroupOffsets
from wirebroker.coordinator.outcome import Moment, Outcome, Token

if TYPE_CHECKING:
    from wirebroker.coordinator.groups.shard.shard import GroupShard

NO_OFFSET = -1
NO_RETENTION = -1
# First version with GROUP_ID_NOT_FOUND.
FIRST_GROUP_NOT_FOUND_VERSION = 9


class HasOffsets(Protocol):
    """An object with committed offsets."""

    @property
    def offsets(self) -> GroupOffsets:
        """The offsets."""
        ...


class DetachedOffsets(NamedTuple):
    """A copy of one group's offsets, for an OffsetFetch in a thread."""

    offsets: GroupOffsets

    @classmethod
    def of(cls, shard: HasOffsets, group_id: str) -> DetachedOffsets:
        """Copy a group's offsets, but not the values."""
        detached = cls(GroupOffsets())
        committed = shard.offsets.by_group.get(group_id)
        if committed is not None:
            detached.offsets.by_group[group_id] = dict(committed)
            detached.offsets.count = len(committed)
        unstable = shard.offsets.pending.open.get(group_id)
        if unstable is not None:
            # Only the partitions matter.
            detached.offsets.pending.open[group_id] = dict(unstable)
        return detached


# -- OffsetCommit ----------------------------------------------------------------------------


class Commit:
    """An OffsetCommit request, limited to existing partitions.

    Attributes:
        topics: (name, topic id, partitions of the body) each.
    """

    __slots__ = ("body", "topics", "version")

    def __init__(
        self, body: Any, version: int, topics: list[tuple[str, bytes, Sequence[Any]]]
    ) -> None:
        self.body = body
        self.version = version
        self.topics = topics


def commit(shard: GroupShard, request: Commit, token: Token, now: Moment) -> Outcome:
    """Handle an OffsetCommit request.

    Raises:
        KafkaError: The error for every partition of the response.
    """
    body = request.body
    group = shard.groups.get(body.group_id)
    if group is not None:
        group.admit_commit(request, shard.timers, now)
    elif body.generation_id_or_member_epoch >= 0:
        by_version = request.version >= FIRST_GROUP_NOT_FOUND_VERSION
        code = ErrorCode.GROUP_ID_NOT_FOUND if by_version else ErrorCode.ILLEGAL_GENERATION
        raise KafkaError(code)
    outcome = Outcome()
    answers: list[dict[str, Any]] = []
    retention_ms: int = body.retention_time_ms
    expire_ms = NO_EXPIRY if retention_ms == NO_RETENTION else _int64(now.wall_ms + retention_ms)
    for name, topic_id, partitions in request.topics:
        partition_results = add_commits(
            outcome,
            shard,
            body.group_id,
            name,
            partitions,
            wall_ms=now.wall_ms,
            expire_ms=expire_ms,
            topic_id=topic_id,
        )
        answers.append({"name": name, "topic_id": topic_id, "partitions": partition_results})
    if not outcome.records:
        shard.make_simple(body.group_id)
    outcome.answer(token, {"topics": answers})
    return outcome


def add_commits(
    outcome: Outcome,
    shard: GroupShard,
    group_id: str,
    topic: str,
    partitions: Sequence[Any],
    *,
    wall_ms: int,
    expire_ms: int = NO_EXPIRY,
    topic_id: bytes = ZERO_UUID,
) -> list[dict[str, Any]]:
    """Add a record for each committed partition of a topic; return their results."""
    limit = shard.settings.offset_metadata_max_bytes
    answers: list[dict[str, Any]] = []
    for partition in partitions:
        metadata: str = partition.committed_metadata or ""
        error = ErrorCode.NONE
        if utf16_length(metadata) > limit:
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            fields: tuple[Any, ...] = (
                partition.committed_offset,
                max(partition.committed_leader_epoch, NO_LEADER_EPOCH),
                metadata,
                wall_ms,
                expire_ms,
                topic_id,
            )
            committed = tuple.__new__(  # pyright: ignore[reportUnknownMemberType]
                CommittedOffset, fields
            )
            record = offset_commit_record(group_id, topic, partition.partition_index, committed)
            outcome.records.append(record)
        answers.append({"partition_index": partition.partition_index, "error_code": error})
    return answers


def utf16_length(text: str) -> int:
    """Return a text's length in Java."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character > "\uffff" for character in text)


# -- OffsetFetch -----------------------------------------------------------------------------


def fetch(
    shard: HasOffsets,
    group_id: str,
    topics: Sequence[tuple[str, bytes, Sequence[int]]],
    *,
    is_stable: bool = False,
) -> list[dict[str, Any]]:
    """Return the topics of an OffsetFetch response.

    `topics` has (name, topic id, partitions) each. With `is_stable`, offsets that an open
    transaction may change get an error.
    """
    answers: list[dict[str, Any]] = []
    for name, topic_id, partitions in topics:
        partition_results: list[dict[str, Any]] = []
        for index in partitions:
            if is_stable and shard.offsets.is_unstable(group_id, name, index):
                partition_results.append(_unstable(index))
                continue
            committed = shard.offsets.find(group_id, name, index)
            if committed is not None and _is_of_another(committed.topic_id, topic_id):
                # The topic was recreated since.
                committed = None
            partition_results.append(_partition(index, committed))
        answers.append({"name": name, "topic_id": topic_id, "partitions": partition_results})
    return answers


def fetch_all(shard: HasOffsets, group_id: str, *, is_stable: bool = False) -> list[dict[str, Any]]:
    """Return the topics of an OffsetFetch response for all offsets."""
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for topic, partition, committed in shard.offsets.of_group(group_id):
        is_hidden = is_stable and shard.offsets.is_unstable(group_id, topic, partition)
        answer = _unstable(partition) if is_hidden else _partition(partition, committed)
        by_topic.setdefault(topic, []).append(answer)
    return [
        {"name": topic, "topic_id": ZERO_UUID, "partitions": partitions}
        for topic, partitions in by_topic.items()
    ]


def _int64(value: int) -> int:
    """Return a sum with Java's overflow."""
    return (value + 2**63) % 2**64 - 2**63


def _is_of_another(committed_for: bytes, asked_for: bytes) -> bool:
    return ZERO_UUID not in {committed_for, asked_for} and committed_for != asked_for


def _unstable(index: int) -> dict[str, Any]:
    return _partition(index, None) | {"error_code": ErrorCode.UNSTABLE_OFFSET_COMMIT}


def _partition(index: int, committed: CommittedOffset | None) -> dict[str, Any]:
    if committed is None:
        return {
            "partition_index": index,
            "committed_offset": NO_OFFSET,
            "committed_leader_epoch": NO_LEADER_EPOCH,
            "metadata": "",
        }
    return {
        "partition_index": index,
        "committed_offset": committed.offset,
        "committed_leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
    }


# -- OffsetDelete ----------------------------------------------------------------------------


def delete(
    shard: GroupShard, group_id: str, topics: Sequence[tuple[str, Sequence[int]]], token: Token
) -> Outcome:
    """Handle an OffsetDelete request, limited to existing partitions.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or NON_EMPTY_GROUP if the members' topics are unknown.
    """
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    group.check_offset_delete()
    outcome = Outcome()
    answers: list[dict[str, Any]] = []
    prefix = group_prefix(group_id)
    for name, partitions in topics:
        is_read = group.is_subscribed_to(name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        partition_results = [
            {"partition_index": index, "error_code": error} for index in partitions
        ]
        answers.append({"name": name, "partitions": partition_results})
        if is_read:
            continue
        outcome.records += [
            CoordinatorRecord(prefix + partition_suffix(name, index), None)
            for index in partitions
            if shard.offsets.has(group_id, name, index)
        ]
    outcome.answer(token, {"topics": answers})
    return outcome
