"""What administrators ask: which groups there are, what they look like, that they go.

Source: Kafka's GroupMetadataManager.listGroups and describeGroups, GroupCoordinatorShard.
deleteGroups; KIP-518 for the filters, KIP-1043 for groups that are not found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.coordinator_records import group_tombstone
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.classic_group import ClassicGroup, GroupState
from wirebroker.coordinator.runtime import Outcome, Token

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wirebroker.coordinator.groups import GroupShard

CLASSIC_TYPE: Final = "classic"
# From this version on DescribeGroups has an error for a group that is not there.
FIRST_NOT_FOUND_VERSION: Final = 6


def list_groups(
    shard: GroupShard, states: Collection[str], types: Collection[str]
) -> list[dict[str, Any]]:
    """Return the groups of a ListGroups response; empty filters let all pass."""
    wanted_states = {each.lower().strip() for each in states}
    wanted_types = {each.lower().strip() for each in types}
    found: list[tuple[str, str, str, str]] = [
        (group.group_id, group.protocol_type or "", group.state, CLASSIC_TYPE)
        for group in shard.groups.values()
    ]
    found += [
        (group.group_id, group.group_type, group.state, group.group_type)
        for group in shard.foreign.by_id.values()
    ]
    return [
        {
            "group_id": group_id,
            "protocol_type": protocol_type,
            "group_state": state,
            "group_type": group_type,
        }
        for group_id, protocol_type, state, group_type in found
        if not wanted_states or state.lower() in wanted_states
        if not wanted_types or group_type in wanted_types
    ]


def describe(shard: GroupShard, group_id: str, *, version: int) -> dict[str, Any]:
    """Return a group of a DescribeGroups response."""
    group = shard.groups.get(group_id)
    if group is None:
        answer: dict[str, Any] = {"group_id": group_id, "group_state": GroupState.DEAD}
        if version >= FIRST_NOT_FOUND_VERSION:
            answer["error_code"] = ErrorCode.GROUP_ID_NOT_FOUND
            is_foreign = group_id in shard.foreign.by_id
            what = "is not a classic group" if is_foreign else "not found"
            answer["error_message"] = f"Group {group_id} {what}."
        return answer
    protocol = group.protocol if group.is_in(GroupState.STABLE) else None
    return {
        "group_id": group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type or "",
        "protocol_data": protocol or "",
        "members": _members(group, protocol),
    }


def _members(group: ClassicGroup, protocol: str | None) -> list[dict[str, Any]]:
    return [
        {
            "member_id": each.member_id,
            "group_instance_id": each.group_instance_id,
            "client_id": each.client_id,
            "client_host": each.client_host,
            "member_metadata": b"" if protocol is None else each.metadata(protocol),
            "member_assignment": each.assignment,
        }
        for each in group.members.values()
    ]


def delete_groups(shard: GroupShard, group_ids: Sequence[str], token: Token) -> Outcome:
    """Delete groups without members, with all their offsets."""
    # A group goes after its offsets, so what a crash leaves can be deleted again.
    outcome = Outcome(is_atomic=False)
    results: list[dict[str, Any]] = []
    for group_id in group_ids:
        result: dict[str, Any] = {"group_id": group_id}
        try:
            _check_deletable(shard, group_id)
            outcome.records += shard.offsets.tombstones(group_id)
            outcome.records.append(group_tombstone(group_id))
        except KafkaError as error:
            result["error_code"] = error.code
        results.append(result)
    outcome.answer(token, {"results": results})
    return outcome


def _check_deletable(shard: GroupShard, group_id: str) -> None:
    group = shard.groups.get(group_id)
    if group is None:
        foreign = shard.foreign.by_id.get(group_id)
        is_used = foreign is not None and foreign.members
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP if is_used else ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_in(GroupState.EMPTY):
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
