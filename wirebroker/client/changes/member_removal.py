"""Members of a group, removed by an administrator (KIP-345).

Brokers remove members of the classic protocol only. A member that still runs joins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.checks.dry_runs import check_group_rights
from wirebroker.client.errors import ClientError, check, did_you_mean, explained
from wirebroker.client.groups.group_kinds import describe_any_group
from wirebroker.client.groups.groups import CONSUMER
from wirebroker.client.groups.share_groups import SHARE
from wirebroker.client.groups.streams_groups import STREAMS
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.groups.groups import GroupMember
    from wirebroker.client.kafka_client import KafkaClient

# First version of LeaveGroup with a reason (KIP-800).
_FIRST_WITH_REASON: Final = 5
_REASON: Final = "removed by an administrator"
_FAILURE: Final = "members of group {} cannot be removed"


async def removable_members(
    client: KafkaClient, group: str, names: Sequence[str] = ()
) -> list[GroupMember]:
    """Return the members with these member ids or group.instance.ids; without names all of them.

    Raises:
        ClientError: The group or a member does not exist, or uses a newer protocol.
    """
    described = await describe_any_group(client, group)
    if described.kind in {SHARE, STREAMS}:
        raise ClientError(
            f"{_FAILURE.format(group)}: it is a {described.kind} group; stop its members instead"
        )
    chosen = described.members
    if names:
        by_name = {member.member_id: member for member in described.members}
        by_name |= {member.instance_id: member for member in chosen if member.instance_id}
        for name in names:
            if name not in by_name:
                raise ClientError(
                    f"group {group} has no member {name}{did_you_mean(name, by_name)}",
                    code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
        chosen = list({by_name[name].member_id: by_name[name] for name in names}.values())
    if not chosen:
        raise ClientError(f"group {group} has no members")
    newer = [member for member in chosen if described.kind == CONSUMER and member.is_upgraded]
    if newer:
        raise ClientError(
            f"{_FAILURE.format(group)}: {newer[0].member_id} uses the consumer protocol, which has"
            " no request to remove members; stop it instead"
        )
    return chosen


async def check_member_removal(client: KafkaClient, group: str) -> None:
    """Check that the user may remove members."""
    await check_group_rights(client, group, "read", _FAILURE.format(group))


async def remove_members(client: KafkaClient, group: str, members: Sequence[GroupMember]) -> None:
    """Remove members.

    Raises:
        ClientError: Some cannot be removed; the others are.
    """

    def body(version: int) -> dict[str, Any]:
        reason = {"reason": _REASON} if version >= _FIRST_WITH_REASON else {}
        rows = [
            {"member_id": member.member_id, "group_instance_id": member.instance_id, **reason}
            for member in members
        ]
        return {"group_id": group, "members": rows}

    answer = await client.request_of_coordinator(
        group, ApiKey.LEAVE_GROUP, body, error_of=lambda answer: int(answer.error_code)
    )
    check(answer.error_code, _FAILURE.format(group))
    failed = [row for row in answer.members if row.error_code]
    if failed:
        code = failed[0].error_code
        # The usual text of this code is about commits.
        reason = "it has left" if code == ErrorCode.UNKNOWN_MEMBER_ID else explained(code)
        raise ClientError(
            f"{len(failed)} of {len(members)} members of group {group} cannot be removed:"
            f" {failed[0].member_id or failed[0].group_instance_id}: {reason}",
            code=code,
        )
