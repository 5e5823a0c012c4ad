"""Members of streams groups (KIP-1071) as their clients see them, and their requests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from compat_tests.lockstep.group_kinds.epoch_members import EpochMembers
from compat_tests.lockstep.steps import Expression, call
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import StepsWithResult
    from compat_tests.lockstep.steps import Answer

TIMEOUT_MS: Final = 3_000_000  # no member is removed during a run
TASK_KINDS: Final = ("active_tasks", "standby_tasks", "warmup_tasks")
_SUBTOPOLOGIES: Final = ("0", "1")

Tasks = dict[str, list[int]]  # by subtopology


@dataclass(slots=True)
class StreamsMember:
    member_id: str
    instance: str | None
    process: str
    endpoint: dict[str, Any] | None
    epoch: int = 0
    endpoint_epoch: int = -1
    tasks: dict[str, Tasks] = field(default_factory=dict)
    is_away: bool = False

    def learn(self, answer: Answer) -> bool:
        """Take over the response to a heartbeat; return whether the member is one now."""
        if not answer.is_good:
            return False
        self.is_away = False
        self.epoch = answer.number("member_epoch")
        self.endpoint_epoch = answer.number("endpoint_information_epoch")
        for kind in TASK_KINDS:
            if answer.get(kind) != "null":
                self.tasks[kind] = _tasks(kind, answer)
        return True

    def reported(self) -> dict[str, Any]:
        """Return the member's tasks as fields of a heartbeat."""
        return {kind: as_tasks(self.tasks.get(kind, {})) for kind in TASK_KINDS}


@dataclass(slots=True)
class StreamsGroup:
    group_id: str
    topologies: list[Expression]  # by epoch
    topology_epoch: int = 0
    members: list[StreamsMember] = field(default_factory=list)

    @property
    def topology(self) -> Expression:
        return self.topologies[self.topology_epoch]


def _tasks(kind: str, answer: Answer) -> Tasks:
    texts = {name: answer.get(f"{kind}[{name}].partitions") for name in _SUBTOPOLOGIES}
    return {
        name: [int(partition) for partition in re.findall(r"\d+", text)]
        for name, text in texts.items()
        if text
    }


def as_tasks(tasks: Tasks) -> list[dict[str, Any]]:
    return [
        {"subtopology_id": name, "partitions": partitions} for name, partitions in tasks.items()
    ]


def chained(source: str, repartition: str, changelog: str, epoch: int) -> Expression:
    """Return a topology of two subtopologies: a source, and a repartition topic with a store."""
    return call(
        "topology",
        call("subtopology", "0", source, sinks=[repartition]),
        call(
            "subtopology",
            "1",
            repartition=[call("internal", repartition)],
            changelogs=[call("internal", changelog, cleanup_policy="compact")],
        ),
        epoch=epoch,
    )


class StreamsRequests(EpochMembers):
    """Requests about streams groups; `StreamsGroups` selects member and time."""

    heartbeat = ApiKey.STREAMS_GROUP_HEARTBEAT
    description = ApiKey.STREAMS_GROUP_DESCRIBE
    unknown_member: ClassVar[dict[str, Any]] = {"member_id": "nobody", "instance_id": None}

    def _beat_fields(self, group: StreamsGroup, member: StreamsMember) -> dict[str, Any]:
        return {
            "group_id": group.group_id,
            "member_id": member.member_id,
            "member_epoch": member.epoch,
            "instance_id": member.instance,
            "endpoint_information_epoch": member.endpoint_epoch,
        }

    def _whole_fields(self, group: StreamsGroup, member: StreamsMember) -> dict[str, Any]:
        """Return the fields of a request that states everything."""
        return {
            **self._beat_fields(group, member),
            "rebalance_timeout_ms": TIMEOUT_MS,
            "topology": group.topology,
            **{kind: [] for kind in TASK_KINDS},
            "process_id": member.process,
            "user_endpoint": member.endpoint,
            "client_tags": [{"key": "zone", "value": member.process}],
            "rack_id": self.random.choice((None, "r")),
        }

    def _send_join(self, group: StreamsGroup, member: StreamsMember) -> StepsWithResult[bool]:
        """Join, or join again; return whether the member is one now."""
        member.epoch, member.endpoint_epoch, member.tasks = 0, -1, {}
        answer = yield from self._send_beat(self._whole_fields(group, member))
        return member.learn(answer)
