"""The client's side of a share group: what a share consumer reports and reads (KIP-932).

It reports its subscription when it joins, after a failure, and when it changes.

Source: Kafka's ShareMembershipManager, ShareHeartbeatRequestManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.support.coordinators.share_group_kit import ShareGroups
    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember

_FORGOTTEN = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
# The group was deleted by an administrator.
_DELETED = ErrorCode.GROUP_ID_NOT_FOUND
_JOIN = 0


class ShareClient:
    """A share consumer.

    Attributes:
        epoch: That of the last response; 0 while it joins.
        owned: The partitions that it reads.
        lost: Number of requests that took effect since the last response.
    """

    def __init__(self, member_id: str, names: tuple[str, ...]) -> None:
        self.member_id = member_id
        self.names = names
        self.epoch = _JOIN
        self.owned: frozenset[tuple[bytes, int]] = frozenset()
        self.lost = 0
        self._reported: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"<{self.member_id} in epoch {self.epoch}>"

    def member_of(self, groups: ShareGroups) -> ShareGroupMember | None:
        """Return it as the coordinator knows it."""
        is_known = "g" in groups.shard.groups
        return groups.share().members.get(self.member_id) if is_known else None

    def send(self, groups: ShareGroups, *, loses: bool = False) -> None:
        """Send a heartbeat; handle the response, unless it is lost."""
        was_member = self.member_of(groups) is not None
        names = None if self.names == self._reported else self.names
        self._reported = self.names
        answer = groups.share_beat(self.member_id, self.epoch, names)
        error = groups.code(answer)
        self._check(error, was_member=was_member)
        if error is ErrorCode.NONE:
            self.lost += 1
        if loses:
            self._reported = None
        else:
            self._receive(groups, answer, error)

    def _check(self, error: ErrorCode, *, was_member: bool) -> None:
        if error is ErrorCode.FENCED_MEMBER_EPOCH:
            # After two lost responses the coordinator no longer knows the epoch.
            assert self.lost > 1, f"a repetition of {self} is refused"
        elif error in {ErrorCode.UNKNOWN_MEMBER_ID, _DELETED}:
            assert not was_member, f"{self} is unknown"
        else:
            allowed = {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}
            assert error in allowed, f"{self} gets {error!r}"

    def _receive(self, groups: ShareGroups, answer: dict[str, Any], error: ErrorCode) -> None:
        if error in _FORGOTTEN or error is _DELETED:
            self.epoch, self.owned, self.lost, self._reported = _JOIN, frozenset(), 0, None
            return
        if error is not ErrorCode.NONE:
            self._reported = None
            return
        self.lost = 0
        assert answer["member_epoch"] > 0, "the epoch of a member"
        assert answer["member_epoch"] >= self.epoch, f"{self} goes back"
        self.epoch = answer["member_epoch"]
        assignment = answer.get("assignment")
        if assignment is not None:
            self.owned = frozenset(
                (topic["topic_id"], index)
                for topic in assignment["topic_partitions"]
                for index in topic["partitions"]
            )
            topics = groups.shard.image.topics_by_id
            names = {topics[topic_id].name for topic_id, _ in self.owned}
            assert names <= set(self.names), f"{self} does not want a partition"
