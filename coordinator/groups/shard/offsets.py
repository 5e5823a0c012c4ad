"""Committed offsets: kept as they are in the log, read when somebody asks.

    group id -> topic and partition (the end of the record's key) -> value of the record

A partition of `__consumer_offsets` holds a million of them, loaded at each start and mostly never
asked for again; so nothing of them is decoded before (README.md beside this).

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
    decode_committed_offset,
    group_prefix,
    offset_commit_record,
    partition_suffix,
    read_partition_suffix,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.groups.shard.pending_offsets import PendingOffsets
from wirebroker.coordinator.outcome import Moment, Outcome, Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.coordinator.groups.shard.shard import GroupShard

NO_OFFSET = -1
NO_RETENTION = -1
# From this version on a commit to an unknown group says so.
FIRST_GROUP_NOT_FOUND_VERSION = 9


class GroupOffsets:
    """The committed offsets of all groups of a shard."""

    __slots__ = ("by_group", "count", "pending")

    def __init__(self) -> None:
        # An empty inner dict is removed.
        self.by_group: dict[str, dict[bytes, bytes]] = {}
        self.count = 0
        # What is committed in transactions that are open.
        self.pending = PendingOffsets()

    def put(self, group_id: str, suffix: bytes, value: bytes) -> None:
        """Take over a commit that counts."""
        self.pending.overtake(group_id, suffix)
        self._store(group_id, suffix, value)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Take over what a producer committed in its transaction, or forget it."""
        for group_id, suffix, value in self.pending.end(producer_id, is_commit=is_commit):
            self._store(group_id, suffix, value)

    def _store(self, group_id: str, suffix: bytes, value: bytes) -> None:
        offsets = self.by_group.get(group_id)
        if offsets is None:
            offsets = self.by_group[group_id] = {}
        before = len(offsets)
        offsets[suffix] = value
        self.count += len(offsets) - before

    def remove(self, group_id: str, suffix: bytes) -> None:
        """Take over a tombstone."""
        self.pending.remove(group_id, suffix)
        offsets = self.by_group.get(group_id)
        if offsets is not None and offsets.pop(suffix, None) is not None:
            self.count -= 1
            if not offsets:
                del self.by_group[group_id]

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return what a group committed for a partition."""
        value = self.by_group.get(group_id, {}).get(partition_suffix(topic, partition))
        return None if value is None else decode_committed_offset(value)

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        """Tell whether a group committed something for a partition, in a transaction or not."""
        suffix = partition_suffix(topic, partition)
        is_committed = suffix in self.by_group.get(group_id, ())
        return is_committed or self.pending.is_open(group_id, suffix)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Tell whether an open transaction may change what is committed for a partition."""
        pending = self.pending
        return bool(pending.open) and pending.is_open(group_id, partition_suffix(topic, partition))

    def of_group(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield (topic, partition, what was committed) of a group."""
        for suffix, value in self.by_group.get(group_id, {}).items():
            yield *read_partition_suffix(suffix), decode_committed_offset(value)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the records that delete all offsets of a group."""
        prefix = group_prefix(group_id)
        suffixes = {**self.by_group.get(group_id, {}), **self.pending.open.get(group_id, {})}
        return [CoordinatorRecord(prefix + suffix, None) for suffix in suffixes]


class HasOffsets(Protocol):
    """What committed offsets are looked up in."""

    @property
    def offsets(self) -> GroupOffsets:
        """The offsets."""
        ...


class DetachedOffsets(NamedTuple):
    """What one group has committed by now: a thread may look it up while the shard goes on."""

    offsets: GroupOffsets

    @classmethod
    def of(cls, shard: HasOffsets, group_id: str) -> DetachedOffsets:
        """Take them (about 10 ns an offset: values are shared)."""
        detached = cls(GroupOffsets())
        known = shard.offsets.by_group.get(group_id)
        if known is not None:
            detached.offsets.by_group[group_id] = dict(known)
            detached.offsets.count = len(known)
        unstable = shard.offsets.pending.open.get(group_id)
        if unstable is not None:
            # Which partitions, that is: their producers may change.
            detached.offsets.pending.open[group_id] = dict(unstable)
        return detached


# -- OffsetCommit ----------------------------------------------------------------------------


class Commit(NamedTuple):
    """An OffsetCommit request, reduced to partitions that exist.

    Attributes:
        body: The decoded body, for the member's identity.
        version: Of the request.
        topics: (name, topic id, partitions of the body) each.
    """

    body: Any
    version: int
    topics: Sequence[tuple[str, bytes, Sequence[Any]]]


def commit(shard: GroupShard, request: Commit, token: Token, moment: Moment) -> Outcome:
    """Handle an OffsetCommit request.

    Raises:
        KafkaError: What every partition of the response says.
    """
    body = request.body
    group = shard.groups.get(body.group_id)
    if group is not None:
        group.admit_commit(body, shard.timers, moment)
    elif body.generation_id_or_member_epoch >= 0:
        by_version = request.version >= FIRST_GROUP_NOT_FOUND_VERSION
        code = ErrorCode.GROUP_ID_NOT_FOUND if by_version else ErrorCode.ILLEGAL_GENERATION
        raise KafkaError(code)
    outcome = Outcome()
    answers: list[dict[str, Any]] = []
    retention_ms: int = body.retention_time_ms
    expire_ms = NO_EXPIRY if retention_ms == NO_RETENTION else _int64(moment.wall_ms + retention_ms)
    for name, topic_id, partitions in request.topics:
        answered = add_commits(
            outcome,
            shard,
            body.group_id,
            name,
            partitions,
            wall_ms=moment.wall_ms,
            expire_ms=expire_ms,
            topic_id=topic_id,
        )
        answers.append({"name": name, "topic_id": topic_id, "partitions": answered})
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
    """Add a record for each partition of a topic that a request commits; return their answers."""
    limit = shard.settings.offset_metadata_max_bytes
    answers: list[dict[str, Any]] = []
    for each in partitions:
        metadata: str = each.committed_metadata or ""
        error = ErrorCode.NONE
        if utf16_length(metadata) > limit:
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            committed = CommittedOffset(
                each.committed_offset,
                max(each.committed_leader_epoch, NO_LEADER_EPOCH),
                metadata,
                wall_ms,
                expire_ms,
                topic_id,
            )
            record = offset_commit_record(group_id, topic, each.partition_index, committed)
            outcome.records.append(record)
        answers.append({"partition_index": each.partition_index, "error_code": error})
    return answers


def utf16_length(text: str) -> int:
    """Return a text's length as Java counts it, which is what the limit is compared with."""
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

    Args:
        shard: Where to look.
        group_id: Whose offsets.
        topics: (name, topic id, partitions) each.
        is_stable: Give no offset that an open transaction may change.
    """
    answers: list[dict[str, Any]] = []
    for name, topic_id, partitions in topics:
        answered: list[dict[str, Any]] = []
        for index in partitions:
            if is_stable and shard.offsets.is_unstable(group_id, name, index):
                answered.append(_unstable(index))
                continue
            found = shard.offsets.find(group_id, name, index)
            if found is not None and _is_of_another(found.topic_id, topic_id):
                # The topic was deleted and created again since.
                found = None
            answered.append(_partition(index, found))
        answers.append({"name": name, "topic_id": topic_id, "partitions": answered})
    return answers


def fetch_all(shard: HasOffsets, group_id: str, *, is_stable: bool = False) -> list[dict[str, Any]]:
    """Return the topics of an OffsetFetch response with everything that a group committed."""
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
    """Return a sum as Java's long has it: beyond the largest comes the smallest."""
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
    """Handle an OffsetDelete request, reduced to partitions that exist.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or NON_EMPTY_GROUP if it is not known what members read.
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
        answered = [{"partition_index": index, "error_code": error} for index in partitions]
        answers.append({"name": name, "partitions": answered})
        if is_read:
            continue
        outcome.records += [
            CoordinatorRecord(prefix + partition_suffix(name, index), None)
            for index in partitions
            if shard.offsets.has(group_id, name, index)
        ]
    outcome.answer(token, {"topics": answers})
    return outcome
