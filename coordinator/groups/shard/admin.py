"""ListGroups, DescribeGroups and DeleteGroups.

Source: Kafka's GroupMetadataManager.listGroups and describeGroups,
GroupCoordinatorShard.deleteGroups; KIP-518 for filters, KIP-1043 for unknown groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError, shortened
from wirebroker.coordinator.groups.classic.classic_group import GroupState
from wirebroker.coordinator.groups.partitions import java_hash
from wirebroker.coordinator.outcome import Outcome, Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.shard.shard import GroupShard

# First version of DescribeGroups with an error for an unknown group.
FIRST_NOT_FOUND_VERSION: Final = 6
# The order is not worth more time: 1 ms.
_MOST_SORTED: Final = 250
# Of BaseHashTable.findSlot, whose slots are the highest bits of the product.
_HASH_FACTOR: Final = -7046029254386353131


def filter_words(requested: Iterable[str]) -> Steps[frozenset[str]]:
    """Return a ListGroups filter in lower case, in steps."""
    words: set[str] = set()
    for word in requested:
        words.add(word.lower().strip())
        yield
    return frozenset(words)


def list_groups(
    shard: GroupShard, states: frozenset[str], types: frozenset[str]
) -> list[dict[str, Any]]:
    """Return the groups of a ListGroups response.

    `states` and `types` come from `filter_words`; empty ones match all. A few groups have the order
    in which Kafka lists them, so that outputs can be compared.
    """
    listed = [
        {
            "group_id": group.group_id,
            "protocol_type": group.listed_protocol_type,
            "group_state": group.state_name,
            "group_type": group.group_type,
        }
        for group in shard.groups.values()
        if not states or _state_word(group.state_name) in states
        if not types or group.group_type in types
    ]
    if len(listed) <= _MOST_SORTED:
        listed.sort(key=_in_table)
    return listed


def _in_table(listed: dict[str, Any]) -> int:
    """Return the sort key that gives groups the order of Kafka's hash table."""
    group_id: str = listed["group_id"]
    return java_hash(group_id) * _HASH_FACTOR % (1 << 64)


def _state_word(name: str) -> str:
    """Return the word that selects a state in ListGroups (StreamsGroupState.toLowerCaseString)."""
    return "not_ready" if name == "NotReady" else name.lower()


def describe(shard: GroupShard, group_id: str, *, version: int) -> dict[str, Any]:
    """Return a group of a DescribeGroups response."""
    group = shard.classic(group_id)
    if group is None:
        answer: dict[str, Any] = {"group_id": group_id, "group_state": GroupState.DEAD}
        if version >= FIRST_NOT_FOUND_VERSION:
            answer["error_code"] = ErrorCode.GROUP_ID_NOT_FOUND
            is_other = group_id in shard.groups
            reason = "is not a classic group" if is_other else "not found"
            answer["error_message"] = shortened(f"Group {group_id} {reason}.")
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
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "member_metadata": b"" if protocol is None else member.metadata(protocol),
            "member_assignment": member.assignment,
        }
        for member in group.members.values()
    ]


def delete_groups(shard: GroupShard, group_ids: Sequence[str], token: Token) -> Outcome:
    """Delete groups without members, with all their offsets."""
    # A group's tombstone is last, so that deletion can be repeated after a crash.
    outcome = Outcome(is_atomic=False)
    results: list[dict[str, Any]] = []
    for group_id in group_ids:
        result: dict[str, Any] = {"group_id": group_id}
        try:
            group = _existing(shard, group_id)
            group.check_delete()
            outcome.records += shard.offsets.tombstones(group_id)
            outcome.records += group.tombstones()
        except KafkaError as error:
            result["error_code"] = error.code
        results.append(result)
    outcome.answer(token, {"results": results})
    return outcome


def _existing(shard: GroupShard, group_id: str) -> Group:
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    return group
