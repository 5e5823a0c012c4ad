"""Records of classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.coordinator_records import CoordinatorRecord, group_metadata_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup


def group_record(
    group: ClassicGroup,
    *,
    generation: int | None = None,
    protocol: str | None,
    timestamp_ms: int | None = None,
    assignments: Mapping[str, bytes] | None = None,
) -> CoordinatorRecord:
    """Return a group's record; arguments other than None replace its values.

    `protocol` may be None only without members.
    """
    assert protocol is not None or not group.members, "members have a protocol"
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "rebalance_timeout": member.rebalance_timeout_ms,
            "session_timeout": member.session_timeout_ms,
            "subscription": member.metadata(protocol or ""),
            "assignment": (
                member.assignment if assignments is None else assignments.get(member.member_id, b"")
            ),
        }
        for member in group.members.values()
    ]
    return group_metadata_record(
        group.group_id,
        protocol_type=group.protocol_type or "",
        generation=group.generation if generation is None else generation,
        protocol=protocol,
        leader=group.leader,
        current_state_timestamp=group.state_timestamp_ms if timestamp_ms is None else timestamp_ms,
        members=members,
    )


def creation_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the first record of a group, without members."""
    return group_metadata_record(
        group.group_id,
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.state_timestamp_ms,
    )
