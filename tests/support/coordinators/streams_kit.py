"""Streams groups in a shard with a list as its log, topics, and the work beside the shard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.support.coordinators.consumer_kit import compacted_log
from tests.support.coordinators.group_kit import REBALANCE_MS
from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.modern_kit import ModernGroups
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record
from wirebroker.coordinator.groups.streams import background_tasks, prepared_topology
from wirebroker.coordinator.groups.streams.streams_describe import describe
from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup
from wirebroker.coordinator.groups.streams.streams_heartbeat import (
    ENDPOINTS,
    INTERNAL_TOPICS,
    heartbeat,
)
from wirebroker.coordinator.groups.streams.streams_request import StreamsHeartbeat
from wirebroker.coordinator.groups.streams.task_assignment import run_job
from wirebroker.coordinator.groups.streams_settings import StreamsSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.streams.prepared_topology import PreparedTopology
    from wirebroker.coordinator.groups.streams.streams_member import StreamsMember

SESSION_MS = 45_000
HEARTBEAT_MS = 5_000
ASSIGNMENT_INTERVAL_MS = 1_000

Owned = dict[str, list[int]]


def internal(name: str, partitions: int = 0, replicas: int = 0, **configs: str) -> Any:
    """Return an internal topic of a topology; underscores in names of configs mean dots."""
    pairs = [SimpleNamespace(key=key.replace("_", "."), value=configs[key]) for key in configs]
    return SimpleNamespace(
        name=name, partitions=partitions, replication_factor=replicas, topic_configs=pairs
    )


def subtopology(
    name: str,
    *sources: str,
    changelogs: Iterable[Any] = (),
    sinks: Iterable[str] = (),
    repartition: Iterable[Any] = (),
    copartition: Iterable[tuple[list[int], list[int]]] = (),
) -> Any:
    return SimpleNamespace(
        subtopology_id=name,
        source_topics=list(sources),
        source_topic_regex=[],
        state_changelog_topics=list(changelogs),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartition),
        copartition_groups=[
            SimpleNamespace(
                source_topics=first, source_topic_regex=[], repartition_source_topics=second
            )
            for first, second in copartition
        ],
    )


def topology(*subtopologies: Any, epoch: int = 0) -> Any:
    return SimpleNamespace(epoch=epoch, subtopologies=list(subtopologies))


# One subtopology with state; t has three partitions.
COUNTS = topology(subtopology("0", "t", changelogs=[internal("counts", cleanup_policy="compact")]))


def counts_image() -> ClusterImage:
    return one_broker(*topic("t", 1, partitions=3), *topic("counts", 2, partitions=3))


def listed(tasks: Mapping[str, Iterable[int]]) -> list[Any]:
    """Return tasks as in a request."""
    return [
        SimpleNamespace(subtopology_id=name, partitions=sorted(partitions))
        for name, partitions in tasks.items()
    ]


def tasks_in(response: Mapping[str, Any], kind: str = "active_tasks") -> Owned | None:
    entries = response.get(kind)
    if entries is None:
        return None
    return {entry["subtopology_id"]: entry["partitions"] for entry in entries}


class StreamsGroups(ModernGroups):
    """A shard with topics, whose effects are carried out on demand.

    `streams` are settings of streams groups; by default nothing is delayed.

    Attributes:
        prepares: Whether each topology is prepared before its heartbeat, as large ones are.
    """

    kind = "STREAMS_GROUP_"
    prepares = False

    def __init__(
        self,
        *,
        image: ClusterImage | None = None,
        streams: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.streams = {"initial_rebalance_delay_ms": 0, **(streams or {})}
        super().__init__(
            image=counts_image() if image is None else image,
            streams=StreamsSettings(**self.streams),
            **settings,
        )

    def reloaded(self, *, compacted: bool = False, **settings: Any) -> StreamsGroups:
        """Return the shard after a restart from the log, in which compaction has left less."""
        loaded = StreamsGroups(
            log=compacted_log(self.log) if compacted else self.log,
            image=self.shard.image,
            now_ms=self.now_ms,
            streams=self.streams,
            **settings,
        )
        loaded._tokens = self._tokens
        loaded.prepares = self.prepares
        return loaded

    def streams_group(self, group_id: str = "g") -> StreamsGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, StreamsGroup)
        return group

    def streams_member(self, member_id: str, group_id: str = "g") -> StreamsMember:
        return self.streams_group(group_id).member(member_id)

    def durable(self) -> Any:
        """Return the state that comes from records alone."""
        groups = self.shard.groups.values()
        of_streams = sorted(
            (group for group in groups if isinstance(group, StreamsGroup)),
            key=lambda group: group.group_id,
        )
        return (*super().durable(), [content(group) for group in of_streams])

    # -- requests ----------------------------------------------------------------------------

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        group_id: str = "g",
        instance: str | None = None,
        rack: str | None = None,
        rebalance_ms: int = -1,
        topology: Any = None,
        active: Mapping[str, Iterable[int]] | None = None,
        standby: Mapping[str, Iterable[int]] | None = None,
        process: str | None = None,
        endpoint: tuple[str, int] | None = None,
        endpoint_epoch: int = 0,
        tags: Mapping[str, str] | None = None,
        offsets: Iterable[tuple[str, int, int]] | None = None,
        shutdown: bool = False,
        version: int = 1,
        client_id: str = "client",
    ) -> dict[str, Any]:
        """Send StreamsGroupHeartbeat; return its response."""
        body = SimpleNamespace(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            endpoint_information_epoch=endpoint_epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=rebalance_ms,
            topology=topology,
            active_tasks=None if active is None else listed(active),
            standby_tasks=None if active is None else listed(standby or {}),
            warmup_tasks=None if active is None else [],
            process_id=process,
            user_endpoint=None
            if endpoint is None
            else SimpleNamespace(host=endpoint[0], port=endpoint[1]),
            client_tags=None
            if tags is None
            else [SimpleNamespace(key=key, value=tags[key]) for key in tags],
            task_offsets=None
            if offsets is None
            else [
                SimpleNamespace(subtopology_id=name, partition=partition, offset=offset)
                for name, partition, offset in offsets
            ],
            task_end_offsets=None,
            shutdown_application=shutdown,
        )
        request = StreamsHeartbeat(body, version, client_id, "/1.2.3.4", self.prepares)
        try:
            # As the handler does.
            request.check()
        except KafkaError as error:
            return {"error_code": error.code, "error_message": error.message}
        prepared = self.prepared(request) if self.prepares else None
        token = self.token()
        self.carry_out(heartbeat(self.shard, request, token, self.moment, prepared))
        answer = self.answers[token]
        if ENDPOINTS in answer:
            answer["partitions_by_user_endpoint"] = in_one_go(answer.pop(ENDPOINTS))
        return answer

    def prepared(self, request: StreamsHeartbeat) -> PreparedTopology | None:
        """Prepare the topology of a request or of its group, as if it were large."""
        with mock.patch.object(prepared_topology, "_FEW", -1):
            inputs = prepared_topology.inputs_of(self.shard, request)
        return None if inputs is None else prepared_topology.prepare(inputs)

    def enter(self, member_id: str, **fields: Any) -> dict[str, Any]:
        """Join, or join again after the member gave up all tasks."""
        defaults: dict[str, Any] = {
            "topology": COUNTS,
            "rebalance_ms": REBALANCE_MS,
            "active": {},
            "process": f"process of {member_id}",
        }
        return self.beat(member_id, 0, **{**defaults, **fields})

    def stay(self, member_id: str, **fields: Any) -> dict[str, Any]:
        """Beat with the member's epoch; it reports what it was assigned."""
        member = self.streams_member(member_id, fields.get("group_id", "g"))
        reported = {
            "instance": member.instance_id,
            "active": member.assigned.active,
            "standby": member.assigned.standby,
        }
        return self.beat(member_id, member.epoch, **{**reported, **fields})

    def settle(self, *member_ids: str, group_id: str = "g") -> None:
        """Let members beat until the group is stable."""
        group = self.streams_group(group_id)
        for _ in range(10):
            self.advance(ASSIGNMENT_INTERVAL_MS)
            for member_id in member_ids or tuple(group.members):
                self.stay(member_id, group_id=group_id)
            self.work()
            if group.state == "Stable":
                return
        raise AssertionError(f"the group stays {group.state}")

    def active(self, member_id: str) -> Owned:
        """Return the active tasks that a member has."""
        assigned = self.streams_member(member_id).assigned
        return {name: sorted(epochs) for name, epochs in assigned.active.items()}

    def standby(self, member_id: str) -> Owned:
        assigned = self.streams_member(member_id).assigned
        return {name: sorted(partitions) for name, partitions in assigned.standby.items()}

    def describe(self, group_id: str = "g") -> dict[str, Any]:
        return in_one_go(describe(self.shard, group_id))

    # -- topics and configs ------------------------------------------------------------------

    def create_internal(self, response: Mapping[str, Any]) -> None:
        """Create the topics that a response requests."""
        for requested in response.get(INTERNAL_TOPICS, ()):
            if requested.name not in self.shard.image.topics:
                number = 100 + self.shard.image.offset % 150
                self.create_topic(requested.name, number, requested.partition_count)

    def configure(self, group_id: str = "g", **configs: str) -> None:
        """Set the group's own configs; underscores in names mean dots."""
        self.change(
            *(
                config_record(ResourceType.GROUP, group_id, name.replace("_", "."), value)
                for name, value in configs.items()
            )
        )

    # -- long work ---------------------------------------------------------------------------

    def begin(self, effect: Any) -> Iterator[None] | None:
        return self.assign(background_tasks, run_job, effect)


def content(group: StreamsGroup) -> Any:
    """Return the state of a group that comes from records."""
    return (
        group.group_id,
        group.epoch,
        group.metadata_hash,
        group.validated_topology_epoch,
        group.assignment_configs,
        group.description_epochs,
        group.topology,
        group.assignment_epoch,
        group.assignment_ms,
        group.members,
        group.target,
        group.static_members,
        group.state,
    )
