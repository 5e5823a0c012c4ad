"""Steps of groups whose members have epochs and may be static: consumer and streams groups."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, Final

from compat_tests.lockstep.group_kinds.changing_members import ChangingMembers
from compat_tests.lockstep.steps import command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import Moves, StepsWithResult
    from compat_tests.lockstep.steps import Answer

LEAVE: Final = -1
LEAVE_FOR_A_WHILE: Final = -2
_NO_EPOCH: Final = -1


class EpochMembers(ChangingMembers):
    """Steps that do not depend on what a group assigns.

    Attributes:
        most_members: The largest group.
        heartbeat, description: The requests of the kind.
        unknown_member: Fields of a heartbeat of an unknown member.
    """

    most_members: ClassVar[int]
    heartbeat: ClassVar[ApiKey]
    description: ClassVar[ApiKey]
    unknown_member: ClassVar[dict[str, Any]]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.groups = []

    @abc.abstractmethod
    def _beat_fields(self, group: Any, member: Any) -> dict[str, Any]:
        """Return the fields of each heartbeat of a member."""

    def _most_members(self, group: Any) -> int:
        del group
        return self.most_members

    def ending(self) -> Moves:
        for group in self.groups:
            yield from self._describe(group)
            yield command(["group-records", group.group_id])

    # -- members that come and go ------------------------------------------------------------

    def leave_for_a_while(self) -> Moves:
        group, member = self._any_member(is_static=True)
        if member is not None and (yield from self._send_leave(group, member, LEAVE_FOR_A_WHILE)):
            member.is_away = True

    # -- heartbeats --------------------------------------------------------------------------

    def wrong_beat(self) -> Moves:
        """Send a heartbeat with a wrong epoch, member, instance or group."""
        group, member = self._any_member()
        if member is None:
            return
        fields = self._beat_fields(group, member)
        match self.random.randrange(6):
            case 0:
                fields["member_epoch"] += self.random.choice((-2, -1, 1, 1000))
            case 1:
                fields["member_epoch"] -= 1
                fields |= member.reported()
            case 2:
                fields |= self.unknown_member
                fields["member_epoch"] = self.random.choice((member.epoch, LEAVE))
            case 3:
                fields["instance_id"] = self.random.choice((None, "nothing"))
            case 4:
                fields["group_id"] = f"{self.prefix}unknown"
                fields["member_epoch"] = self.random.choice((1, LEAVE))
            case _:
                fields["instance_id"] = "nothing"
                fields["member_epoch"] = self.random.choice((LEAVE, LEAVE_FOR_A_WHILE))
        # An epoch of 0 or a leave would change the group without the model's notice.
        if fields["member_epoch"] > 0 or fields["instance_id"] == "nothing":
            answer = yield from self._send_beat(fields)
            if fields["group_id"] == group.group_id and fields["member_id"] == member.member_id:
                member.learn(answer)

    def _send_beat(self, fields: dict[str, Any]) -> StepsWithResult[Answer]:
        answer = yield from self.ask(self.heartbeat, fields)
        return answer

    def _send_leave(self, group: Any, member: Any, epoch: int = LEAVE) -> StepsWithResult[bool]:
        fields = {**self._beat_fields(group, member), "member_epoch": epoch}
        answer = yield from self._send_beat(fields)
        return answer.is_good

    # -- offsets and administration ----------------------------------------------------------

    def commit(self) -> Moves:
        """Commit offsets of some topics, in the member's epoch or one beside it."""
        group, member = self._any_member()
        epoch = _NO_EPOCH if member is None else member.epoch + self.random.choice((0, 0, 0, -1, 1))
        topics = [
            {
                **topic.both,
                "partitions": [
                    {
                        "partition_index": index,
                        "committed_offset": self.random.choice((0, 5, 77)),
                        "committed_leader_epoch": -1,
                        "committed_metadata": self.random.choice(("", "mark")),
                    }
                    for index in self.some([*topic.partitions, 9], maximum=2)
                ],
            }
            for topic in self.some(self.topics, maximum=2)
        ]
        request = {
            "group_id": group.group_id,
            "generation_id_or_member_epoch": epoch,
            "member_id": "" if member is None else member.member_id,
            "group_instance_id": None if member is None else member.instance,
            "topics": topics,
        }
        version = self.version(ApiKey.OFFSET_COMMIT, 7)
        yield from self.ask(ApiKey.OFFSET_COMMIT, request, version=version)

    def delete_offsets(self) -> Moves:
        topics = [
            {
                "name": topic.name,
                "partitions": [{"partition_index": index} for index in topic.partitions],
            }
            for topic in self.some(self.topics)
        ]
        request = {"group_id": self._group().group_id, "topics": topics}
        yield from self.ask(ApiKey.OFFSET_DELETE, request)

    def delete_groups(self) -> Moves:
        request = {"groups_names": [self._group().group_id]}
        yield from self.ask(ApiKey.DELETE_GROUPS, request)

    def _describe(self, group: Any) -> StepsWithResult[Answer]:
        answer = yield from self.ask(self.description, {"group_ids": [group.group_id]}, version=1)
        return answer

    # -- choices -----------------------------------------------------------------------------

    def _any_member(self, *, is_static: bool = False) -> tuple[Any, Any]:
        """Return a group, and one of its members or None."""
        group = self._group()
        members = [member for member in group.members if member.instance or not is_static]
        return group, self.random.choice(members) if members else None
