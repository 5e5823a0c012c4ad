"""Committed offsets of groups, deleted; of a share group those of whole topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.checks.dry_runs import check_group_rights, check_topic_rights
from wirebroker.client.errors import ClientError, check, check_all, with_done
from wirebroker.client.groups.group_kinds import listed_group
from wirebroker.client.groups.groups import CONSUMER, committed_of, delete_offsets
from wirebroker.client.groups.share_groups import SHARE, describe_share_group
from wirebroker.client.groups.share_offsets import delete_share_offsets, shared_progress_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.client.topics.partition_choice import TopicChoice

_FAILURE: Final = "offsets of group {} cannot be deleted"


class OffsetDeletion(NamedTuple):
    """Offsets of a group of a kind (classic, consumer, share, streams), by partition.

    Attributes:
        offsets: None where a share group has read nothing yet.
    """

    group: str
    kind: str
    offsets: Mapping[TopicPartition, int | None]


async def planned_deletion(
    client: KafkaClient, group: str, choices: Sequence[TopicChoice]
) -> OffsetDeletion:
    """Return the offsets of a group in these topics and partitions.

    Raises:
        ClientError: There is none for a choice, or the group does not exist.
    """
    listed = await listed_group(client, group)
    kind = CONSUMER if listed is None else listed.kind or CONSUMER
    offsets: dict[TopicPartition, int | None]
    if kind == SHARE:
        limited = [choice for choice in choices if choice.partitions is not None]
        if limited:
            raise ClientError(
                f"{group} is a share group: the offsets of a whole topic are deleted; name"
                f" {limited[0].topic} without partitions"
            )
        offsets = {row.place: row.start for row in await shared_progress_of(client, group)}
    else:
        offsets = {**await committed_of(client, group)}
    chosen: dict[TopicPartition, int | None] = {}
    for choice in choices:
        matching = {
            place: offset
            for place, offset in offsets.items()
            if place.topic == choice.topic
            and (choice.partitions is None or place.partition in choice.partitions)
        }
        if not matching:
            raise ClientError(f"group {group} has no committed offsets in {choice}")
        missing = set(choice.partitions or ()) - {place.partition for place in matching}
        if missing:
            numbers = ", ".join(map(str, sorted(missing)))
            raise ClientError(
                f"group {group} has no committed offsets in partitions {numbers} of {choice.topic}"
            )
        chosen |= matching
    return OffsetDeletion(group, kind, chosen)


async def check_deletion(client: KafkaClient, plan: OffsetDeletion) -> None:
    """Check that the user may delete offsets.

    Raises:
        ClientError: The error that the cluster would return.
    """
    failure = _FAILURE.format(plan.group)
    await check_group_rights(client, plan.group, "delete", failure)
    topics = sorted({place.topic for place in plan.offsets})
    await check_topic_rights(client, topics, "read", "read")
    if plan.kind == SHARE:
        group = await describe_share_group(client, plan.group)
        if group.members:
            raise ClientError(f"{failure}: the group has members; stop them first")


async def delete_planned_offsets(client: KafkaClient, plan: OffsetDeletion) -> None:
    """Delete the offsets of a plan.

    Raises:
        ClientError: Members of the group read a topic, or all of a share group's must stop first.
    """
    if plan.kind == SHARE:
        topics = sorted({place.topic for place in plan.offsets})
        errors = list((await delete_share_offsets(client, plan.group, topics)).values())
        for error in errors:
            if error is not None:
                raise with_done(error, errors.count(None), "other topic", "cleared")
        return
    code, codes = await delete_offsets(client, plan.group, plan.offsets)
    check(code, _FAILURE.format(plan.group))
    check_all(
        (
            (place_code, f"the offset of group {plan.group} in {place} cannot be deleted", None)
            for place, place_code in codes.items()
        ),
        "other offset",
        "deleted",
    )
