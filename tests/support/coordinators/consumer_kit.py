"""Consumer groups in a shard with a list as its log, topics, and the long work beside the shard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.coordinators.group_kit import REBALANCE_MS
from tests.support.coordinators.kit import one_broker, topic, topic_id
from tests.support.coordinators.modern_kit import ModernGroups
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.consumer import (
    background_assignment,
    downgrade,
    prepared_step,
    regexes,
)
from wirebroker.coordinator.groups.consumer.consumer_group import ConsumerGroup
from wirebroker.coordinator.groups.consumer.consumer_heartbeat import heartbeat
from wirebroker.coordinator.groups.consumer.heartbeat_request import ConsumerHeartbeat
from wirebroker.coordinator.groups.consumer.regexes import ResolveRegexes
from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex
from wirebroker.coordinator.groups.consumer.target_assignment import run_job
from wirebroker.coordinator.groups.consumer.topic_regex import matching_topics
from wirebroker.coordinator.groups.shard.topic_lookup import HashTopics, look_up
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember

# Those of group_configs.py.
CONSUMER_SESSION_MS = 45_000
HEARTBEAT_MS = 5_000
ASSIGNMENT_INTERVAL_MS = 1_000
# Topics of tests: t has three partitions, u has two.
T, U = topic_id(1), topic_id(2)

Owned = dict[bytes, list[int]]


def topics_image() -> ClusterImage:
    return one_broker(*topic("t", 1, partitions=3), *topic("u", 2, partitions=2))


def listed(partitions: Mapping[bytes, Iterable[int]]) -> list[Any]:
    """Return partitions as in a request."""
    return [
        SimpleNamespace(topic_id=topic_id, partitions=sorted(indexes))
        for topic_id, indexes in partitions.items()
    ]


class ConsumerGroups(ModernGroups):
    """A shard with topics, whose effects are carried out on demand."""

    kind = "CONSUMER_GROUP_"

    def __init__(self, *, image: ClusterImage | None = None, **settings: Any) -> None:
        super().__init__(image=topics_image() if image is None else image, **settings)

    def reloaded(self, *, compacted: bool = False, **settings: Any) -> ConsumerGroups:
        """Return the shard after a restart from the log, in which compaction has left less."""
        loaded = ConsumerGroups(
            log=compacted_log(self.log) if compacted else self.log,
            image=self.shard.image,
            now_ms=self.now_ms,
            **settings,
        )
        loaded._uuids = self._uuids
        loaded._tokens = self._tokens
        return loaded

    def consumer(self, group_id: str = "g") -> ConsumerGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def consumer_member(self, member_id: str, group_id: str = "g") -> ConsumerMember:
        return self.consumer(group_id).member(member_id)

    def durable(self) -> Any:
        """Return the state that comes from records alone."""
        return (*super().durable(), [content(group) for group in self._consumer_groups()])

    def _consumer_groups(self) -> list[ConsumerGroup]:
        groups = (group for group in self.shard.groups.values() if isinstance(group, ConsumerGroup))
        return sorted(groups, key=lambda group: group.group_id)

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
        names: Iterable[str] | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        owned: Mapping[bytes, Iterable[int]] | None = None,
        version: int = 1,
        client_id: str = "client",
    ) -> dict[str, Any]:
        """Send ConsumerGroupHeartbeat; return its response."""
        body = SimpleNamespace(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=rebalance_ms,
            subscribed_topic_names=None if names is None else list(names),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None if owned is None else listed(owned),
        )
        request = ConsumerHeartbeat(body, version, client_id, "/1.2.3.4")
        try:
            # As the handler does.
            request.check(self.shard.settings.consumer_assignors)
        except KafkaError as error:
            return {"error_code": error.code, "error_message": error.message}
        token = self.token()
        prepared: prepared_step.PreparedStep | prepared_step.PreparedAway | None = None
        if prepared_step.is_large(self.shard, body):
            prepared = self.prepare(request)
        leaving = prepared_step.leaves_much(self.shard, body)
        if leaving is not None:
            prepared = in_one_go(prepared_step.prepare_away(group_id, leaving))
        self.carry_out(heartbeat(self.shard, request, token, self.moment, prepared))
        return self.answers[token]

    def prepare(self, request: ConsumerHeartbeat) -> prepared_step.PreparedStep | None:
        """Compute the next step of a large member before its heartbeat, as the handler does."""
        return in_one_go(prepared_step.prepare(self.shard, request))

    def enter(self, member_id: str, *names: str, **fields: Any) -> dict[str, Any]:
        """Join, or join again after the member gave up all partitions."""
        defaults: dict[str, Any] = {"names": names, "rebalance_ms": REBALANCE_MS, "owned": {}}
        return self.beat(member_id, 0, **{**defaults, **fields})

    def stay(self, member_id: str, **fields: Any) -> dict[str, Any]:
        """Beat with the member's epoch; it reports what it was assigned."""
        member = self.consumer_member(member_id, fields.get("group_id", "g"))
        fields = {"instance": member.instance_id, "owned": member.assigned, **fields}
        return self.beat(member_id, member.epoch, **fields)

    def settle(self, *member_ids: str, group_id: str = "g") -> None:
        """Let members beat until the group is stable."""
        group = self.consumer(group_id)
        for _ in range(10):
            self.advance(ASSIGNMENT_INTERVAL_MS)
            for member_id in member_ids or tuple(group.members):
                self.stay(member_id, group_id=group_id)
            self.work()
            if group.state == "Stable":
                return
        raise AssertionError(f"the group stays {group.state}")

    def carry_out_records(self, records: list[CoordinatorRecord]) -> None:
        self.carry_out(Outcome(records))

    def carry_out_deletion(self, group_id: str = "g") -> None:
        assert self.delete(group_id) is ErrorCode.NONE

    # -- long work ---------------------------------------------------------------------------

    def begin(self, effect: Any) -> Iterator[None] | None:
        if isinstance(effect, HashTopics):
            in_one_go(look_up(self.shard, effect.group_id))
            return None
        if isinstance(effect, downgrade.ServeDowngraded):
            return self._serve_downgraded(effect)
        if isinstance(effect, ResolveRegexes):
            return self._search(effect)
        return self.assign(background_assignment, run_job, effect)

    def _serve_downgraded(self, effect: downgrade.ServeDowngraded) -> Iterator[None]:
        yield
        self.run(downgrade.begin, effect)

    def _search(self, effect: ResolveRegexes) -> Iterator[None]:
        image, began_ms = self.shard.image, self.moment.wall_ms
        found = in_one_go(matching_topics(effect.regexes, tuple(image.topics)))
        resolved = {
            regex: ResolvedRegex(frozenset(topics), image.offset, began_ms)
            for regex, topics in found.items()
        }
        yield
        records = in_one_go(regexes.records_of(effect.group_id, resolved))
        self.run(regexes.install, effect.group_id, records)
        regexes.abandon(self.shard, effect.group_id)


def content(group: ConsumerGroup) -> Any:
    """Return the state of a group that comes from records."""
    return (
        group.group_id,
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assignment_ms,
        group.has_partition_metadata,
        group.members,
        group.target,
        group.static_members,
        group.subscriptions.resolved,
        group.state,
    )


def compacted_log(log: list[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """Return the last record of each key, in the order of the log, without tombstones."""
    last = {record.key: number for number, record in enumerate(log)}
    return [
        record
        for number, record in enumerate(log)
        if last[record.key] == number and record.value is not None
    ]
