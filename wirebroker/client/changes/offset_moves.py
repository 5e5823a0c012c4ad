"""Committed offsets of groups, moved: where to, and the requests.

Of a share group, the start offsets are moved. A group must have no members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.checks.dry_runs import check_offset_commit, check_share_offset_change
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.group_kinds import listed_group
from wirebroker.client.groups.groups import CONSUMER, commit, committed_of
from wirebroker.client.groups.share_groups import SHARE
from wirebroker.client.groups.share_offsets import alter_share_offsets, shared_progress_of
from wirebroker.client.groups.streams_groups import STREAMS, describe_streams_group
from wirebroker.client.topics.leaders import clamped, offsets_at
from wirebroker.client.topics.partition_choice import partitions_chosen
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.special_offsets import LATEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.client.topics.partition_choice import TopicChoice


class OffsetTarget(NamedTuple):
    """Where offsets are moved to; one attribute is set.

    Attributes:
        timestamp: ms since 1970, EARLIEST or LATEST: the first record at or after it, else the end.
        offset: This offset, or the nearest existing one.
        shift: Number of records forward, or back, from the committed offset.
    """

    timestamp: int | None = None
    offset: int | None = None
    shift: int | None = None


class OffsetMove(NamedTuple):
    """A partition's move.

    Attributes:
        committed: None if there is no offset yet.
        is_to_end: Whether the goal is the end of the partition, which moves.
    """

    place: TopicPartition
    committed: int | None
    goal: int
    is_to_end: bool


class GroupMoves(NamedTuple):
    """The moves of a group.

    Attributes:
        kind: classic, consumer, share or streams.
        is_new: Whether the group does not exist; the change creates it.
    """

    group: str
    kind: str
    is_new: bool
    moves: list[OffsetMove]


async def planned_moves(
    client: KafkaClient,
    group: str,
    target: OffsetTarget,
    choices: Sequence[TopicChoice] = (),
    *,
    new_kind: str = CONSUMER,
) -> GroupMoves:
    """Return where each partition's offset moves; without choices, of all partitions with one.

    `new_kind` is the kind of a missing group. Of a streams group, only offsets of its input topics
    can be moved. With a shift, partitions without an offset are left out.

    Raises:
        ClientError: A topic or partition does not exist, or the group has no offsets there.
    """
    listed = await listed_group(client, group)
    # Before Kafka 3.8 groups have no kind.
    kind = new_kind if listed is None else listed.kind or CONSUMER
    if kind == SHARE and target.shift is not None:
        raise ClientError(
            f"{group} is a share group: its offsets cannot be moved by a number of records"
        )
    committed = await _offsets_of(client, group, kind)
    places = await _places(client, group, kind, committed, choices)
    if target.shift is not None:
        places = [place for place in places if committed.get(place) is not None]
    ends = await offsets_at(client, dict.fromkeys(places, LATEST))
    goals = await _goals(client, places, target, committed)
    moves = [
        OffsetMove(place, committed.get(place), goals[place], goals[place] >= ends[place])
        for place in places
    ]
    return GroupMoves(group, kind, listed is None, moves)


async def _offsets_of(
    client: KafkaClient, group: str, kind: str
) -> dict[TopicPartition, int | None]:
    """Return the offsets; of a share group None for a partition of which it has read nothing."""
    if kind == SHARE:
        try:
            return {row.place: row.start for row in await shared_progress_of(client, group)}
        except ClientError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return {}
    committed = await committed_of(client, group)
    if kind != STREAMS:
        return {**committed}
    described = await describe_streams_group(client, group)
    inputs = {topic for part in described.subtopologies for topic in part.source_topics}
    return {place: offset for place, offset in committed.items() if place.topic in inputs}


async def _places(
    client: KafkaClient,
    group: str,
    kind: str,
    offsets: Mapping[TopicPartition, int | None],
    choices: Sequence[TopicChoice],
) -> list[TopicPartition]:
    if not choices:
        if not offsets:
            raise ClientError(f"group {group} has no committed offsets: name a topic")
        return list(offsets)
    places = await partitions_chosen(client, choices)
    for place in places if kind == STREAMS else ():
        if place not in offsets:
            raise ClientError(
                f"streams group {group} has no committed offset of an input topic in {place}"
            )
    return places


async def _goals(
    client: KafkaClient,
    places: list[TopicPartition],
    target: OffsetTarget,
    offsets: Mapping[TopicPartition, int | None],
) -> dict[TopicPartition, int]:
    if target.timestamp is not None:
        return await offsets_at(client, dict.fromkeys(places, target.timestamp))
    if target.offset is not None:
        return await clamped(client, dict.fromkeys(places, target.offset))
    assert target.shift is not None
    shift = target.shift
    return await clamped(client, {place: (offsets[place] or 0) + shift for place in places})


async def check_moves(client: KafkaClient, plan: GroupMoves) -> None:
    """Check that offsets can be moved.

    Raises:
        ClientError: The error that the cluster would return.
    """
    check = check_share_offset_change if plan.kind == SHARE else check_offset_commit
    await check(client, plan.group, [move.place for move in plan.moves])


async def move_offsets(client: KafkaClient, plan: GroupMoves) -> None:
    """Move the offsets of a plan.

    Raises:
        ClientError: The group has members, or a topic does not exist.
    """
    goals = {move.place: move.goal for move in plan.moves}
    if plan.kind == SHARE:
        await alter_share_offsets(client, plan.group, goals)
    else:
        await commit(client, plan.group, goals)
