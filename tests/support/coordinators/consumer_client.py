"""The client's side of a consumer group: what a consumer reports, keeps and gives up (KIP-848).

It gives up partitions some time after the response, and takes new ones immediately. It reports
everything when it joins and after a failure; otherwise only what has changed since its last report.

Source: Kafka's ConsumerMembershipManager, ConsumerHeartbeatRequestManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.coordinators.group_kit import REBALANCE_MS
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.support.coordinators.consumer_kit import ConsumerGroups

Partition = tuple[bytes, int]
Request = dict[str, Any]

_FORGOTTEN = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
# The instance id belongs to another member: the application may only try again.
_TAKEN = {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID}
_JOIN, _LEAVE, _LEAVE_STATIC = 0, -1, -2


class ConsumerClient:
    """A consumer.

    Attributes:
        epoch: That of the last response; 0 while it joins.
        owned: The partitions that it reads.
        pending: The last assignment, while it has not given up all others; else None.
        lost: Number of requests that took effect since the last response.
    """

    def __init__(
        self,
        member_id: str,
        *,
        instance: str | None = None,
        names: tuple[str, ...] = (),
        regex: str = "",
    ) -> None:
        self.member_id = member_id
        self.instance = instance
        self.names = names
        self.regex = regex
        self.epoch = _JOIN
        self.owned: frozenset[Partition] = frozenset()
        self.pending: frozenset[Partition] | None = None
        self.lost = 0
        self._reported: Request = {}

    def __repr__(self) -> str:
        return f"<{self.member_id} in epoch {self.epoch}>"

    def request(self) -> Request:
        """Return the next heartbeat."""
        partitions: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(self.owned):
            partitions.setdefault(topic_id, []).append(index)
        report = {
            "rebalance_ms": REBALANCE_MS,
            "names": self.names,
            "regex": self.regex,
            "owned": partitions,
        }
        changed = {
            name: value for name, value in report.items() if self._reported.get(name) != value
        }
        self._reported = report
        return {**self._identity(self.epoch), **changed}

    def _identity(self, epoch: int) -> Request:
        return {"member_id": self.member_id, "epoch": epoch, "instance": self.instance}

    def goodbye(self, *, for_a_while: bool) -> Request:
        """Return the request to leave, and give up everything."""
        self._lose_all()
        return self._identity(_LEAVE_STATIC if for_a_while else _LEAVE)

    def send(self, groups: ConsumerGroups, *, loses: bool = False) -> None:
        """Send a heartbeat; handle the response, unless it is lost."""
        was_member = self.is_live(groups)
        answer = groups.beat(**self.request())
        error = groups.code(answer)
        self._check(error, was_member=was_member)
        if error is ErrorCode.NONE:
            self.lost += 1
        if loses:
            self._reported = {}
        else:
            self._receive(answer, error)

    def _check(self, error: ErrorCode, *, was_member: bool) -> None:
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            assert not was_member, f"{self} is unknown"
        if error is ErrorCode.FENCED_MEMBER_EPOCH:
            # After two lost responses the coordinator no longer knows the epoch.
            assert self.lost > 1, f"a repetition of {self} is refused"
        elif error not in _FORGOTTEN | _TAKEN:
            allowed = {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}
            assert error in allowed, f"{self} gets {error!r}"

    def _receive(self, answer: dict[str, Any], error: ErrorCode) -> None:
        if error in _FORGOTTEN | _TAKEN:
            self._lose_all()
            return
        if error is not ErrorCode.NONE:
            self._reported = {}
            return
        self.lost = 0
        assert answer["member_epoch"] > 0, "the epoch of a member"
        assert answer["member_epoch"] >= self.epoch, f"{self} goes back"
        self.epoch = answer["member_epoch"]
        assignment = answer.get("assignment")
        if assignment is not None:
            self.pending = frozenset(
                (topic["topic_id"], index)
                for topic in assignment["topic_partitions"]
                for index in topic["partitions"]
            )
            if self.owned <= self.pending:
                self.reconcile()

    def reconcile(self) -> None:
        """Give up all partitions but those of the last assignment, and take the new ones."""
        if self.pending is not None:
            self.owned, self.pending = self.pending, None

    def _lose_all(self) -> None:
        self.epoch = _JOIN
        self.owned = frozenset()
        self.pending = None
        self.lost = 0
        self._reported = {}

    def is_live(self, groups: ConsumerGroups) -> bool:
        """Return whether it is a member for itself and for the coordinator."""
        group = groups.shard.groups.get("g")
        member = None if group is None else groups.consumer().members.get(self.member_id)
        return member is not None and member.epoch > 0 and self.epoch > 0
