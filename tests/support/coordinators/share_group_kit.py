"""Share groups in a shard with a list as its log, and the work beside the shard on demand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.coordinators.consumer_kit import ConsumerGroups, T, U, compacted_log
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.share import (
    share_background,
    share_deletion,
    share_initialization,
    share_offsets,
)
from wirebroker.coordinator.groups.share.share_assignment import AssignShareGroup, run_job
from wirebroker.coordinator.groups.share.share_describe import describe
from wirebroker.coordinator.groups.share.share_group import ShareGroup
from wirebroker.coordinator.groups.share.share_heartbeat import heartbeat
from wirebroker.coordinator.groups.share.share_initialization import InitializeShareState
from wirebroker.coordinator.groups.share.share_request import ShareHeartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.coordinator.groups.share.share_member import ShareGroupMember
    from wirebroker.coordinator.groups.share.share_topics import ShareTopics

# Those of group_configs.py.
SHARE_SESSION_MS = 45_000
RETRY_MS = 30_000

__all__ = ("RETRY_MS", "SHARE_SESSION_MS", "ShareGroups", "T", "U", "content")


class ShareGroups(ConsumerGroups):
    """A shard with topics, whose effects are carried out on demand.

    Attributes:
        persister_fails: Whether the persister refuses all requests.
        persisted: The partitions whose share state the persister has created.
    """

    def __init__(self, **settings: Any) -> None:
        self.persister_fails = False
        self.persisted: set[tuple[bytes, int]] = set()
        super().__init__(**settings)

    def reloaded(self, *, compacted: bool = False, **settings: Any) -> ShareGroups:
        """Return the shard after a restart from the log, in which compaction has left less."""
        loaded = ShareGroups(
            log=compacted_log(self.log) if compacted else self.log,
            image=self.shard.image,
            now_ms=self.now_ms,
            **settings,
        )
        loaded._tokens = self._tokens
        loaded.persisted = self.persisted
        return loaded

    def share(self, group_id: str = "g") -> ShareGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ShareGroup)
        return group

    def share_topics(self, group_id: str = "g") -> ShareTopics:
        topics = self.share(group_id).topics
        assert topics is not None, "a group without share topics"
        return topics

    def share_member(self, member_id: str, group_id: str = "g") -> ShareGroupMember:
        return self.share(group_id).member(member_id)

    def durable(self) -> Any:
        """Return the state that comes from records alone."""
        groups = (group for group in self.shard.groups.values() if isinstance(group, ShareGroup))
        ordered = sorted(groups, key=lambda group: group.group_id)
        return (*super().durable(), [content(group) for group in ordered])

    # -- requests ----------------------------------------------------------------------------

    def share_beat(
        self,
        member_id: str,
        epoch: int,
        names: Iterable[str] | None = None,
        *,
        group_id: str = "g",
        rack: str | None = None,
        client_id: str = "client",
    ) -> dict[str, Any]:
        """Send ShareGroupHeartbeat; return its response."""
        body = SimpleNamespace(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=rack,
            subscribed_topic_names=None if names is None else list(names),
        )
        request = ShareHeartbeat(body, client_id, "/1.2.3.4")
        try:
            # As the handler does.
            request.check()
        except KafkaError as error:
            return {"error_code": error.code, "error_message": error.message}
        return self._response(heartbeat, request)

    def share_join(self, member_id: str, *names: str, **fields: Any) -> dict[str, Any]:
        return self.share_beat(member_id, 0, names, **fields)

    def share_stay(self, member_id: str, **fields: Any) -> dict[str, Any]:
        """Beat with the member's epoch."""
        member = self.share_member(member_id, fields.get("group_id", "g"))
        return self.share_beat(member_id, member.epoch, **fields)

    def share_settle(self, group_id: str = "g") -> None:
        """Let members beat until all have the target assignment of the group's epoch."""
        for _ in range(6):
            group = self.share(group_id)
            for member_id in tuple(group.members):
                self.share_stay(member_id, group_id=group_id)
            self.work()
            self.advance(1_000)
            epochs = {member.epoch for member in group.members.values()}
            if epochs == {group.epoch} and not group.has_unassigned:
                return
        raise AssertionError(f"the members stay in {epochs} of {group.epoch}")

    def assigned(self, member_id: str, group_id: str = "g") -> dict[bytes, frozenset[int]]:
        return dict(self.share_member(member_id, group_id).assigned)

    def described(self, group_id: str = "g") -> dict[str, Any]:
        return in_one_go(describe(self.shard, group_id))

    def alter(
        self, partitions: Mapping[bytes, Iterable[int]], group_id: str = "g"
    ) -> dict[str, Any]:
        """Begin what AlterShareGroupOffsets does."""
        listed = {topic_id: tuple(indexes) for topic_id, indexes in partitions.items()}
        return self._response(share_offsets.alter, group_id, listed)

    def begin_deletion(self, *topic_ids: bytes, group_id: str = "g") -> dict[str, Any]:
        return self._response(share_deletion.begin_topic_deletion, group_id, topic_ids)

    def finish_deletion(self, *topic_ids: bytes, group_id: str = "g") -> None:
        self._response(share_deletion.finish_topic_deletion, group_id, topic_ids)

    def begin_group_deletion(self, group_id: str = "g") -> dict[str, Any]:
        return self._response(share_deletion.begin_group_deletion, group_id)

    def _response(self, operation: Any, *arguments: Any) -> dict[str, Any]:
        return self.answers[
            self._refusable(lambda token: operation(self.shard, *arguments, token, self.moment))
        ]

    def forget_topic(self, name: str) -> None:
        """Delete a topic, as the group coordinator hears of it."""
        topic_id = self.shard.image.topics[name].topic_id
        self.delete_topic(name)
        for outcome in share_deletion.sweep_deleted_topics(self.shard, {name: topic_id}):
            self.carry_out(outcome)

    # -- work beside the shard ---------------------------------------------------------------

    def begin(self, effect: Any) -> Iterator[None] | None:
        if isinstance(effect, InitializeShareState):
            return self._initialize(effect)
        if isinstance(effect, AssignShareGroup):
            return self.assign(share_background, run_job, effect)
        return super().begin(effect)

    def _initialize(self, effect: InitializeShareState) -> Iterator[None]:
        yield
        fails = self.persister_fails
        done = share_initialization.failed if fails else share_initialization.initialized
        partitions = {topic_id: indexes for topic_id, (indexes, _) in effect.topics.items()}
        if not fails:
            self.persisted |= {
                (topic_id, index) for topic_id, indexes in partitions.items() for index in indexes
            }
        yield
        self.carry_out(done(self.shard, effect.group_id, partitions, None, self.moment))


def content(group: ShareGroup) -> Any:
    """Return the state of a group that comes from records."""
    return (
        group.group_id,
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assignment_ms,
        group.members,
        group.target,
        group.topics,
    )


def error_of(answer: dict[str, Any]) -> ErrorCode:
    return ErrorCode(answer.get("error_code", 0))
