"""Members of consumer groups (KIP-848) as their clients see them, and their requests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from compat_tests.lockstep.group_kinds.epoch_members import EpochMembers
from compat_tests.lockstep.steps import Expression
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import StepsWithResult
    from compat_tests.lockstep.steps import Answer

TIMEOUT_MS: Final = 3_000_000  # no member is removed during a run
ASSIGNOR: Final = "range"

Partitions = dict[str, list[int]]  # by the name of a topic's id


@dataclass(slots=True)
class Consumer:
    member_id: str
    instance: str | None
    topics: list[str]
    epoch: int = 0
    assigned: Partitions = field(default_factory=dict)
    is_away: bool = False

    def learn(self, answer: Answer) -> bool:
        """Take over the response to a heartbeat; return whether the member is one now."""
        if not answer.is_good:
            return False
        self.epoch = answer.number("member_epoch")
        if answer.get("assignment") != "null":
            self.assigned = _assigned(answer)
        return True

    def reported(self) -> dict[str, Any]:
        """Return the member's partitions as a field of a heartbeat."""
        return {"topic_partitions": as_owned(self.assigned)}


@dataclass(slots=True)
class ConsumerGroup:
    group_id: str
    topics: list[str]  # that its members may subscribe to
    members: list[Consumer] = field(default_factory=list)


def _assigned(answer: Answer) -> Partitions:
    assigned: Partitions = {}
    number = 0
    while topic_id := answer.get(f"assignment.topic_partitions[{number}].topic_id"):
        text = answer.get(f"assignment.topic_partitions[{number}].partitions")
        assigned[topic_id] = [int(index) for index in re.findall(r"\d+", text)]
        number += 1
    return assigned


def as_owned(partitions: Partitions) -> list[dict[str, Any]]:
    """Return partitions as a heartbeat's field."""
    return [
        {"topic_id": Expression(topic_id), "partitions": indexes}
        for topic_id, indexes in partitions.items()
    ]


class ConsumerRequests(EpochMembers):
    """Requests about consumer groups; `ConsumerGroups` selects member and time."""

    heartbeat = ApiKey.CONSUMER_GROUP_HEARTBEAT
    description = ApiKey.CONSUMER_GROUP_DESCRIBE
    unknown_member: ClassVar[dict[str, Any]] = {"member_id": "nobody"}

    def _beat_fields(self, group: ConsumerGroup, member: Consumer) -> dict[str, Any]:
        return {
            "group_id": group.group_id,
            "member_id": member.member_id,
            "member_epoch": member.epoch,
            "instance_id": member.instance,
        }

    def _whole_fields(self, group: ConsumerGroup, member: Consumer) -> dict[str, Any]:
        """Return the fields of a request that states everything."""
        return {
            **self._beat_fields(group, member),
            "rack_id": None,
            "rebalance_timeout_ms": TIMEOUT_MS,
            "subscribed_topic_names": member.topics,
            "server_assignor": ASSIGNOR,
            "topic_partitions": as_owned(member.assigned),
        }

    def _send_join(self, group: ConsumerGroup, member: Consumer) -> StepsWithResult[bool]:
        """Join, or join again; return whether the member is one now."""
        member.epoch, member.assigned = 0, {}
        answer = yield from self._send_beat(self._whole_fields(group, member))
        return member.learn(answer)
