"""A group shard with a list as its log, which commits immediately or fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import finish
from wirebroker.codecs.coordinator_records import decode_group_metadata
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import NO_PRODUCER_ID
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
from wirebroker.coordinator.groups.classic.join import Join
from wirebroker.coordinator.groups.settings import GroupSettings
from wirebroker.coordinator.groups.shard.classic_requests import heartbeat, join, leave, sync
from wirebroker.coordinator.groups.shard.offsets import Commit, commit
from wirebroker.coordinator.groups.shard.shard import GroupShard
from wirebroker.coordinator.outcome import Moment, Outcome

if TYPE_CHECKING:
    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.classic.classic_member import Member

# The protocols of requests that do not specify any.
RANGE = (("range", b"subscription"),)
SESSION_MS = 10_000
REBALANCE_MS = 60_000
START_MS = 1_000_000


def protocols(*pairs: tuple[str, bytes]) -> list[Any]:
    return [SimpleNamespace(name=name, metadata=metadata) for name, metadata in pairs]


class Groups:
    """A shard, its log, and the responses."""

    def __init__(
        self,
        *,
        log: list[CoordinatorRecord] | None = None,
        image: ClusterImage | None = None,
        now_ms: int = 0,
        **settings: Any,
    ) -> None:
        self._uuids = 0
        settings = {"initial_rebalance_delay_ms": 0, **settings}
        self.shard = GroupShard(
            GroupSettings(**settings), image or ClusterImage(), new_uuid=self._new_uuid
        )
        self.log: list[CoordinatorRecord] = []
        self.answers: dict[Any, dict[str, Any]] = {}
        self.effects: list[Any] = []
        self.now_ms = now_ms
        self.fails_with: ErrorCode | None = None
        self._tokens = 0
        for record in log or ():
            self.log.append(record)
            self.shard.replay(*record)
        finish(self.shard.start_timers(self.moment))
        self.carry_out(self.shard.on_loaded(self.moment))

    def _new_uuid(self) -> str:
        self._uuids += 1
        return f"uuid{self._uuids}"

    @property
    def moment(self) -> Moment:
        return Moment(START_MS + self.now_ms, self.now_ms)

    def carry_out(self, outcome: Outcome) -> None:
        if outcome.records and self.fails_with is not None:
            if outcome.on_failure is not None:
                self.carry_out(outcome.on_failure(self.fails_with, self.moment))
            for token, _ in outcome.answers:
                self.answers.setdefault(token, {"error_code": self.fails_with})
        else:
            self.log += outcome.records
            self.shard.apply(outcome.records, NO_PRODUCER_ID)
            for token, response in outcome.answers:
                assert token not in self.answers, f"{token} is answered twice"
                self.answers[token] = response
            self.effects += outcome.effects
        self.shard.check()

    def reloaded(self, **settings: Any) -> Groups:
        """Return the shard after a restart from the log."""
        loaded = Groups(log=self.log, **settings)
        loaded._uuids = self._uuids
        return loaded

    def durable(self) -> Any:
        """Return the state that comes from records alone."""
        shard = self.shard
        return (
            {
                group.group_id: (
                    group.recorded if isinstance(group, ClassicGroup) else group.state_name
                )
                for group in shard.groups.values()
            },
            shard.offsets.by_group,
            shard.offsets.pending.by_producer,
        )

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (next_ms := self.shard.timers.next_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            event = self.shard.timers.take_due(self.now_ms)
            if event is not None:
                self.carry_out(self.shard.on_timer(event, self.moment))
        self.now_ms = end_ms

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.shard.classic(group_id)
        assert group is not None, f"{group_id} is no classic group"
        return group

    def member(self, member_id: str, group_id: str = "g") -> Member:
        return self.group(group_id).members[member_id]

    def recorded(self) -> Any:
        return decode_group_metadata(next(v for k, v in reversed(self.log) if k[1] == 2 and v))

    def token(self) -> str:
        self._tokens += 1
        return f"waiter{self._tokens}"

    def error(self, token: Any) -> ErrorCode:
        return ErrorCode(self.answers[token].get("error_code", 0))

    # -- requests ----------------------------------------------------------------------------

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = "g",
        version: int = 9,
        instance: str | None = None,
        known: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> str:
        """Send JoinGroup; return its waiter."""
        body = SimpleNamespace(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=protocols(*known),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
        )
        request = Join.of(body, version=version, client_id="client", client_host="/1.2.3.4")
        token = self.token()
        self.carry_out(join(self.shard, request, token, self.moment))
        return token

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        group_id: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> str:
        group = self.shard.classic(group_id)
        if generation is None:
            generation = 0 if group is None else group.generation
        body = SimpleNamespace(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance,
            generation_id=generation,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SimpleNamespace(member_id=member, assignment=assignment)
                for member, assignment in (assignments or {}).items()
            ],
        )
        return self._refusable(lambda token: sync(self.shard, body, token, self.moment))

    def heartbeat(
        self,
        member_id: str,
        *,
        generation: int | None = None,
        group_id: str = "g",
        instance: str | None = None,
    ) -> ErrorCode:
        group = self.shard.classic(group_id)
        if generation is None:
            generation = 0 if group is None else group.generation
        body = SimpleNamespace(
            group_id=group_id,
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance,
        )
        return self.error(
            self._refusable(lambda token: heartbeat(self.shard, body, token, self.moment))
        )

    def leave(self, *members: str | tuple[str, str], group_id: str = "g") -> list[ErrorCode]:
        """Remove members by id or (id, instance id); return the error of each."""
        pairs = [(member, None) if isinstance(member, str) else member for member in members]
        identities = [SimpleNamespace(member_id=m, group_instance_id=i) for m, i in pairs]
        token = self._refusable(
            lambda token: leave(self.shard, group_id, identities, token, self.moment)
        )
        answer = self.answers[token]
        if "members" not in answer:
            return [ErrorCode(answer["error_code"])]
        return [ErrorCode(result.get("error_code", 0)) for result in answer["members"]]

    def commit(
        self,
        member_id: str = "",
        *,
        generation: int = -1,
        group_id: str = "g",
        instance: str | None = None,
        topic: str = "t",
        topic_id: bytes = bytes(16),
        partition: int = 0,
        offset: int = 5,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 9,
    ) -> ErrorCode:
        body = SimpleNamespace(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance,
            generation_id_or_member_epoch=generation,
            retention_time_ms=retention_ms,
        )
        requested = SimpleNamespace(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=3,
            committed_metadata=metadata,
        )
        request = Commit(body, version, [(topic, topic_id, [requested])])
        token = self._refusable(lambda token: commit(self.shard, request, token, self.moment))
        answer = self.answers[token]
        if "topics" not in answer:
            return ErrorCode(answer["error_code"])
        return ErrorCode(answer["topics"][0]["partitions"][0]["error_code"])

    def committed(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> int | None:
        entry = self.shard.offsets.find(group_id, topic, partition)
        return None if entry is None else entry.offset

    def _refusable(self, operation: Any) -> str:
        token = self.token()
        try:
            self.carry_out(operation(token))
        except KafkaError as error:
            self.answers[token] = {"error_code": error.code}
        return token

    # -- complete sequences ------------------------------------------------------------------

    def new_id(self, **fields: Any) -> str:
        token = self.join(**fields)
        assert self.error(token) is ErrorCode.MEMBER_ID_REQUIRED
        return self.answers[token]["member_id"]

    def stable(self, count: int = 1, **fields: Any) -> list[str]:
        """Bring a group of dynamic members to Stable; return their ids, the leader first."""
        ids = [self.new_id(**fields) for _ in range(count)]
        for member in ids:
            self.join(member, **fields)
        self.advance(0)
        group = self.group()
        assert group.state == "CompletingRebalance", group.state
        leader = group.leader
        assert leader is not None
        ids.sort(key=lambda member: member != leader)
        for member in (*ids[1:], leader):
            self.sync(member, {m: f"for {m}".encode() for m in ids} if member == leader else None)
        assert group.state == "Stable"
        return ids
