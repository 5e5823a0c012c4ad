"""Requests of classic group members, as their clients would build them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.steps import Expression, begin, call
from compat_tests.lockstep.topics import Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import Moves, StepsWithResult
    from compat_tests.lockstep.steps import Answer

TIMEOUT_MS = 300_000  # no member is removed during a run
FIRST_STATIC_JOIN = 5
FIRST_STATIC = 3  # of Heartbeat, LeaveGroup and SyncGroup


@dataclass(slots=True)
class Member:
    connection: str
    instance: str | None
    topics: tuple[str, ...]  # subscription
    member_id: Expression | str = ""


@dataclass(slots=True)
class Group:
    group_id: str
    generation: int = -1
    leader: Expression | str = ""
    is_synced: bool = False  # if false, the leader's SyncGroup is pending, if there are members
    members: list[Member] = field(default_factory=list)


class GroupRequests(Topics):
    """Requests about classic groups; `Groups` selects member and time."""

    def _join_fields(self, group: Group, member: Member) -> dict[str, Any]:
        metadata = call("subscription", *member.topics)
        return {
            "group_id": group.group_id,
            "session_timeout_ms": TIMEOUT_MS,
            "rebalance_timeout_ms": TIMEOUT_MS,
            "member_id": member.member_id,
            "group_instance_id": member.instance,
            "protocol_type": "consumer",
            "protocols": [
                {"name": "range", "metadata": metadata},
                {"name": "roundrobin", "metadata": metadata},
            ],
            "reason": None,
        }

    def _join_version(self, member: Member) -> int:
        return self.version(ApiKey.JOIN_GROUP, FIRST_STATIC_JOIN if member.instance else 0)

    def _send_join(self, group: Group, member: Member, version: int) -> StepsWithResult[Answer]:
        fields = self._join_fields(group, member)
        answer = yield from self.ask(
            ApiKey.JOIN_GROUP, fields, version=version, to=member.connection
        )
        return answer

    def _begin_join(self, group: Group, member: Member, version: int) -> Any:
        fields = self._join_fields(group, member)
        return begin(ApiKey.JOIN_GROUP, version, fields, name=member.connection)

    def _sync_version(self, member: Member) -> int:
        return self.version(ApiKey.SYNC_GROUP, FIRST_STATIC if member.instance else 0)

    def _sync_fields(self, group: Group, member: Member) -> dict[str, Any]:
        assignments = []
        if member.member_id == group.leader:
            assignments = [
                {"member_id": assigned_member.member_id, "assignment": b"%d" % number}
                for number, assigned_member in enumerate(group.members)
            ]
        return {
            "group_id": group.group_id,
            "generation_id": group.generation,
            "member_id": member.member_id,
            "group_instance_id": member.instance,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assignments,
        }

    def _send_sync(self, group: Group, member: Member) -> StepsWithResult[Answer]:
        fields = self._sync_fields(group, member)
        answer = yield from self.ask(
            ApiKey.SYNC_GROUP,
            fields,
            version=self._sync_version(member),
            to=member.connection,
        )
        return answer

    def _send_leave(self, group: Group, member: Member) -> Moves:
        by_instance = member.instance is not None and self.maybe(0.5)
        identity = {
            "member_id": "" if by_instance else member.member_id,
            "group_instance_id": member.instance,
            "reason": self.random.choice((None, "done")),
        }
        request = {
            "group_id": group.group_id,
            "member_id": member.member_id,
            "members": [identity],
        }
        version = self.version(ApiKey.LEAVE_GROUP, FIRST_STATIC if member.instance else 0)
        yield from self.ask(ApiKey.LEAVE_GROUP, request, version=version)

    def _beat(self, group: Group, member: Member) -> Moves:
        request = {
            "group_id": group.group_id,
            "generation_id": self._generation(group),
            "member_id": member.member_id,
            "group_instance_id": member.instance,
        }
        version = self.version(ApiKey.HEARTBEAT, FIRST_STATIC if member.instance else 0)
        yield from self.ask(ApiKey.HEARTBEAT, request, version=version)

    def _all_offsets(self, group: Group, version: int | None = None) -> Moves:
        if version is None:
            version = self.version(ApiKey.OFFSET_FETCH, 2)
        request = {
            "group_id": group.group_id,
            "topics": None,
            "groups": [{"group_id": group.group_id, "topics": None}],
        }
        yield from self.ask(ApiKey.OFFSET_FETCH, request, version=version)

    def _generation(self, group: Group) -> int:
        if self.maybe(0.85):
            return group.generation
        return group.generation + self.random.choice((-1, 1))
