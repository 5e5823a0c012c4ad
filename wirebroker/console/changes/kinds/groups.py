"""Changes of groups of any kind: delete a group, its offsets, its members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted
from wirebroker.client.changes.member_removal import (
    check_member_removal,
    removable_members,
    remove_members,
)
from wirebroker.client.changes.offset_deletion import (
    check_deletion,
    delete_planned_offsets,
    planned_deletion,
)
from wirebroker.client.checks.dry_runs import check_group_deletion
from wirebroker.client.groups.group_kinds import describe_any_group, progress_of_any
from wirebroker.client.groups.groups import delete_group
from wirebroker.client.groups.share_groups import SHARE
from wirebroker.client.groups.streams_groups import STREAMS
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import kafka_line, verb_line
from wirebroker.console.changes.field_values import choices_of, lines_of
from wirebroker.console.changes.kinds import offset_moves
from wirebroker.console.view.formats import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.changes.offset_deletion import OffsetDeletion
    from wirebroker.client.groups.groups import GroupMember
    from wirebroker.client.topics.partition_choice import TopicChoice
    from wirebroker.console.model.collector import Collector
    from wirebroker.console.model.settings import ClusterSettings


async def _delete(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    group = values["group"]
    client = collector.client
    described = await describe_any_group(client, group)
    progress = await progress_of_any(client, group, described.kind)
    await check_group_deletion(client, group)
    count = sum(row.committed is not None for row in progress)

    async def apply() -> str:
        await delete_group(client, group)
        return f"group {group} was deleted"

    warnings = ["Its consumers then start where their configs say, or fail."] if count else []
    if described.kind == STREAMS:
        warnings.append("Its internal topics remain: delete them as topics.")
    return PreparedChange(
        f"Delete group {group}",
        (
            f"kind: {described.kind}",
            f"committed offsets of {counted(count, 'partition')} are deleted",
        ),
        verb_line(collector.settings, "group delete", ["--yes"], [group]),
        apply,
        warnings=tuple(warnings),
    )


async def _delete_offsets(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    group = values["group"]
    choices = choices_of(values, "topics")
    if not choices:
        raise ChangeError("write at least one topic", "topics")
    client = collector.client
    plan = await planned_deletion(client, group, choices)
    await check_deletion(client, plan)

    async def apply() -> str:
        await delete_planned_offsets(client, plan)
        return f"{counted(len(plan.offsets), 'offset')} of group {group} deleted"

    lines = tuple(
        f"{place}: {'nothing read yet' if offset is None else number(offset)} → no offset"
        for place, offset in plan.offsets.items()
    )
    return PreparedChange(
        f"Delete {counted(len(plan.offsets), 'offset')} of group {group}",
        lines,
        _deletion_command(collector.settings, plan, choices),
        apply,
        warnings=("Its consumers then start where their configs say, or fail.",),
    )


def _deletion_command(
    settings: ClusterSettings, plan: OffsetDeletion, choices: Sequence[TopicChoice]
) -> str:
    if plan.kind == STREAMS:
        tool, flag = "kafka-streams-groups", "--input-topic"
    elif plan.kind == SHARE:
        tool, flag = "kafka-share-groups", "--topic"
    else:
        tool, flag = "kafka-consumer-groups", "--topic"
    topics = [part for choice in choices for part in (flag, str(choice))]
    return kafka_line(settings, tool, ["--delete-offsets", "--group", plan.group, *topics])


async def _remove_members(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    group = values["group"]
    client = collector.client
    names = lines_of(values, "members")
    members = await removable_members(client, group, names)
    await check_member_removal(client, group)

    async def apply() -> str:
        await remove_members(client, group, members)
        return f"{counted(len(members), 'member')} removed from group {group}"

    flags = [part for name in names for part in ("-m", name)]
    return PreparedChange(
        f"Remove {counted(len(members), 'member')} from group {group}",
        tuple(_member_line(member) for member in members),
        verb_line(collector.settings, "group remove-members", [*flags, "--yes"], [group]),
        apply,
        warnings=("A consumer that still runs joins again: stop it first to keep it out.",),
    )


def _member_line(member: GroupMember) -> str:
    is_static = member.instance_id is not None
    name = f"static member {member.instance_id}" if is_static else member.member_id
    return f"{name}: client {member.client_id} on {member.host}"


_GROUP: Final = Field("group", "Group")

KINDS: Final[tuple[ChangeKind, ...]] = (
    *offset_moves.KINDS,
    ChangeKind(
        "delete-group",
        "Delete a group",
        ConsoleRole.ADMIN,
        (_GROUP,),
        "group",
        _delete,
        "groups",
    ),
    ChangeKind(
        "delete-offsets",
        "Delete committed offsets",
        ConsoleRole.ADMIN,
        (
            _GROUP,
            Field(
                "topics",
                "Topics",
                FieldKind.LONG_TEXT,
                "A line for each topic, such as orders, or orders:0,1 for some partitions.",
            ),
        ),
        "group",
        _delete_offsets,
        "groups",
        "group",
    ),
    ChangeKind(
        "remove-members",
        "Remove members of a group",
        ConsoleRole.ADMIN,
        (
            _GROUP,
            Field(
                "members",
                "Members",
                FieldKind.LONG_TEXT,
                "A line with the member id or group.instance.id of each; if empty, all.",
                is_required=False,
            ),
        ),
        "group",
        _remove_members,
        "groups",
        "group",
    ),
)
