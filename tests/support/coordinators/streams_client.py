"""The client's side of a streams group: what a thread reports, keeps and gives up (KIP-1071).

It gives up tasks some time after the response, and takes new ones immediately. It reports its tasks
when it joins, after a failure and when they have changed.

Source: Kafka's StreamsMembershipManager, StreamsGroupHeartbeatRequestManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.coordinators.group_kit import REBALANCE_MS
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.support.coordinators.streams_kit import StreamsGroups

Task = tuple[str, int]
Request = dict[str, Any]

_FORGOTTEN = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
# The instance id belongs to another member: the application may only try again.
_TAKEN = {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID}
_JOIN, _LEAVE, _LEAVE_STATIC = 0, -1, -2


class StreamsClient:
    """A thread.

    Attributes:
        epoch: That of the last response; 0 while it joins.
        active: The active tasks that it processes.
        standby: The standby tasks that it has.
        pending: Active and standby tasks of the last response, while it has not given up all
            others; else None.
        lost: Number of requests that took effect since the last response.
    """

    def __init__(
        self, member_id: str, process: str, topology: Any, *, instance: str | None = None
    ) -> None:
        self.member_id = member_id
        self.process = process
        self.topology = topology
        self.instance = instance
        self.epoch = _JOIN
        self.active: frozenset[Task] = frozenset()
        self.standby: frozenset[Task] = frozenset()
        self.pending: tuple[frozenset[Task], frozenset[Task]] | None = None
        self.lost = 0
        self._reported: object = None

    def __repr__(self) -> str:
        return f"<{self.member_id} of {self.process} in epoch {self.epoch}>"

    def request(self) -> Request:
        """Return the next heartbeat."""
        request = self._identity(self.epoch)
        if self.epoch == _JOIN:
            request |= {
                "topology": self.topology,
                "rebalance_ms": REBALANCE_MS,
                "process": self.process,
            }
        if self._reported != (self.active, self.standby):
            self._reported = self.active, self.standby
            request |= {"active": _by_subtopology(self.active)}
            request |= {"standby": _by_subtopology(self.standby)}
        return request

    def _identity(self, epoch: int) -> Request:
        return {"member_id": self.member_id, "epoch": epoch, "instance": self.instance}

    def goodbye(self, *, for_a_while: bool) -> Request:
        """Return the request to leave, and give up everything."""
        self._lose_all()
        return self._identity(_LEAVE_STATIC if for_a_while else _LEAVE)

    def send(self, groups: StreamsGroups, *, loses: bool = False) -> dict[str, Any]:
        """Send a heartbeat; handle the response, unless it is lost."""
        was_member, has_more = self.is_live(groups), self._has_more_than_assigned(groups)
        answer = groups.beat(**self.request())
        error = groups.code(answer)
        if error is ErrorCode.FENCED_MEMBER_EPOCH:
            # After two lost responses the coordinator no longer knows the epoch. As in Kafka, it
            # also refuses a repetition with tasks that the lost response has taken away.
            assert self.lost > 1 or has_more, f"a repetition of {self} is refused"
        self._check(error, was_member=was_member)
        if error is ErrorCode.NONE:
            self.lost += 1
        if loses:
            self._reported = None
        else:
            self._receive(answer, error)
        return answer

    def _check(self, error: ErrorCode, *, was_member: bool) -> None:
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            assert not was_member, f"{self} is unknown"
        if error not in _FORGOTTEN | _TAKEN:
            # A task that was reported may not exist any longer.
            allowed = {
                ErrorCode.NONE,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.INVALID_REQUEST,
            }
            assert error in allowed, f"{self} gets {error!r}"

    def _has_more_than_assigned(self, groups: StreamsGroups) -> bool:
        """Return whether there are tasks that it no longer has for the coordinator."""
        if not self.is_live(groups):
            return False
        assigned = groups.streams_member(self.member_id).assigned
        pairs = (self.active, assigned.active), (self.standby, assigned.standby)
        return any(
            partition not in known.get(name, ())
            for tasks, known in pairs
            for name, partition in tasks
        )

    def _receive(self, answer: dict[str, Any], error: ErrorCode) -> None:
        if error in _FORGOTTEN | _TAKEN | {ErrorCode.INVALID_REQUEST}:
            self._lose_all()
            return
        if error is not ErrorCode.NONE:
            self._reported = None
            return
        self.lost = 0
        assert answer["member_epoch"] > 0, "the epoch of a member"
        assert answer["member_epoch"] >= self.epoch, f"{self} goes back"
        self.epoch = answer["member_epoch"]
        if answer.get("active_tasks") is not None:
            self.pending = _tasks(answer["active_tasks"]), _tasks(answer["standby_tasks"])
            if self.active <= self.pending[0] and self.standby <= self.pending[1]:
                self.reconcile()

    def reconcile(self) -> None:
        """Give up all tasks but those of the last response, and take the new ones."""
        if self.pending is not None:
            (self.active, self.standby), self.pending = self.pending, None

    def _lose_all(self) -> None:
        self.epoch = _JOIN
        self.active = self.standby = frozenset()
        self.pending = None
        self.lost = 0
        self._reported = None

    def is_live(self, groups: StreamsGroups) -> bool:
        """Return whether it is a member for itself and for the coordinator."""
        group = groups.shard.groups.get("g")
        member = None if group is None else groups.streams_group().members.get(self.member_id)
        return member is not None and member.epoch > 0 and self.epoch > 0


def _by_subtopology(tasks: frozenset[Task]) -> dict[str, list[int]]:
    partitions: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        partitions.setdefault(subtopology, []).append(partition)
    return partitions


def _tasks(entries: list[dict[str, Any]]) -> frozenset[Task]:
    return frozenset(
        (entry["subtopology_id"], partition)
        for entry in entries
        for partition in entry["partitions"]
    )
