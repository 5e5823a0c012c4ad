"""A member of the consumer protocol (KIP-848) that behaves like Kafka's clients.

    ConsumerGroupHeartbeat -> an assignment -> commit and give up partitions, report the rest
        -> OffsetFetch for new partitions -> fetch, process, commit; a heartbeat now and then

It consumes the topic that all members read and only owns the partitions of others. It handles
errors as Kafka's AbstractHeartbeatRequestManager and CommitRequestManager do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.clients.member import (
    FencedError,
    Habits,
    Member,
    RejoinError,
    Versions,
)
from tests.simulation.network.link import LinkLostError
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.clients.model import Model
    from tests.simulation.machine.loop import Process
    from tests.simulation.network.network import Network

Partition = tuple[bytes, int]

_BACKOFF_S: Final = 0.1
# Durations of the application's callback.
_CALLBACKS_S: Final = (0.0, 0.0, 0.5, 3.0)
_BUSY: Final = 0.3
# After another process was found to have the instance id.
_RESTART_S: Final = 1.0
# By then, the session of a dead process has ended.
_MOST_REFUSALS: Final = 20
_JOIN, _LEAVE, _LEAVE_FOR_A_WHILE = 0, -1, -2
_FIRST_OWN_ID_VERSION: Final = 1
# Offset commits and fetches by name, and by topic id.
MODERN_AGES: Final = (Versions(6, 9, 5, 4, 5, 9, 9), Versions(6, 9, 5, 4, 5, 10, 10))


@dataclass(frozen=True)
class ModernHabits(Habits):
    """The configuration of such a member.

    Attributes:
        heartbeat_version: Before version 1, the coordinator chooses member ids.
        names: The topics that it subscribes to.
        regex: A regular expression that it subscribes with, or an empty one.
        leaves_for_good: Whether a static member that leaves does not announce its return.
    """

    heartbeat_version: int = 1
    names: tuple[str, ...] = ()
    regex: str = ""
    leaves_for_good: bool = True


class StaleEpochError(Exception):
    """The coordinator expects another member epoch: a heartbeat is due."""


class ModernMember(Member):
    """One consumer; `generation` is its member epoch.

    Attributes:
        partitions: What it owns.
    """

    habits: ModernHabits

    def __init__(
        self,
        process: Process,
        network: Network,
        model: Model,
        *,
        group: str,
        topic_id: bytes,
        habits: ModernHabits,
    ) -> None:
        super().__init__(
            process,
            network,
            model,
            group=group,
            topic_id=topic_id,
            partition_count=0,
            habits=habits,
        )
        self.generation = _JOIN
        self.partitions: frozenset[Partition] = frozenset()
        # An assignment that is to be reconciled.
        self._pending: frozenset[Partition] | None = None
        self._reports_all = True
        self._reports_partitions = False
        self._beats_at_s = 0.0
        self._refusals = 0
        if habits.heartbeat_version >= _FIRST_OWN_ID_VERSION:
            self.member_id = f"{process.name}-id"

    def claims(self) -> frozenset[Partition]:
        return self.partitions

    async def run(self) -> None:
        while not self._is_told_to_leave:
            try:
                await self._live()
            except RejoinError:
                self._lose_all()
            except LinkLostError:
                await pause(_BACKOFF_S)
            except StaleEpochError:
                self._beats_at_s = 0.0
                await pause(_BACKOFF_S)
            except FencedError:
                self._model.count("fenced")
                self._lose_all()
                return
        await self._leave()

    async def _live(self) -> None:
        clock = self.process.loop
        while not self._is_told_to_leave:
            is_due = clock.time() >= self._beats_at_s or self._reports_partitions
            if is_due and not self._is_busy():
                await self._heartbeat()
            if self._pending is not None:
                await self._reconcile(self._pending)
            elif not self.owned:
                await pause(max(0.0, self._beats_at_s - clock.time()))
            elif await self._process():
                await self._commit()

    def _is_busy(self) -> bool:
        """Return whether the application commits before the next heartbeat is sent."""
        return bool(self.owned) and self._network.random.random() < _BUSY

    # -- membership --------------------------------------------------------------------------

    async def _heartbeat(self) -> None:
        reports_all, self._reports_all = self._reports_all or self.generation == _JOIN, True
        answer = await self._beat(self._report(everything=reports_all))
        await self._check(answer.error_code)
        assert answer.member_epoch > 0, f"{answer} for {self.generation}"
        assert answer.member_epoch >= self.generation, f"{self.member_id} goes back"
        self._reports_all = self._reports_partitions = False
        self.member_id, self.generation = answer.member_id, answer.member_epoch
        self._beats_at_s = self.process.loop.time() + self.habits.heartbeat_interval_s
        self._refusals = 0
        self._model.count("heartbeats")
        if answer.assignment is not None:
            self._pending = frozenset(
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )
            self._model.count("assignments")

    def _report(self, *, everything: bool) -> dict[str, Any]:
        report: dict[str, Any] = {"member_epoch": self.generation, "topic_partitions": None}
        if everything or self._reports_partitions:
            indexes: dict[bytes, list[int]] = {}
            for topic_id, index in sorted(self.partitions):
                indexes.setdefault(topic_id, []).append(index)
            report["topic_partitions"] = [
                {"topic_id": topic_id, "partitions": partitions}
                for topic_id, partitions in indexes.items()
            ]
        if everything:
            report["rebalance_timeout_ms"] = self.habits.rebalance_timeout_ms
            report["subscribed_topic_names"] = list(self.habits.names)
            if self.habits.heartbeat_version >= _FIRST_OWN_ID_VERSION:
                report["subscribed_topic_regex"] = self.habits.regex
        return report

    async def _beat(self, report: dict[str, Any]) -> Any:
        identity = {"member_id": self.member_id, "instance_id": self.habits.instance}
        version = self.habits.heartbeat_version
        return await self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, {**identity, **report})

    async def _leave(self) -> None:
        for_a_while = self.habits.instance is not None and not self.habits.leaves_for_good
        epoch = _LEAVE_FOR_A_WHILE if for_a_while else _LEAVE
        try:
            await self._beat({"member_epoch": epoch})
        except LinkLostError:
            return

    def _lose_all(self) -> None:
        self._take(frozenset())
        self.generation = _JOIN
        self._pending = None
        self._reports_all = True
        self._reports_partitions = False
        self._beats_at_s = 0.0

    # -- partitions --------------------------------------------------------------------------

    async def _reconcile(self, assigned: frozenset[Partition]) -> None:
        """Give up all other partitions, and take the new ones."""
        if not self.partitions <= assigned:
            await pause(self._network.random.choice(_CALLBACKS_S))
            await self._commit()
            self._take(self.partitions & assigned)
        positions = await self._committed_of(assigned - self.partitions)
        self._take(assigned)
        self._positions.update(positions)
        self._pending = None
        self._reports_partitions = True

    def _take(self, partitions: frozenset[Partition]) -> None:
        self.partitions = partitions
        self.owned = tuple(
            sorted(index for topic_id, index in partitions if topic_id == self._topic_id)
        )
        self._positions = {
            index: offset for index, offset in self._positions.items() if index in self.owned
        }

    async def _committed_of(self, partitions: frozenset[Partition]) -> dict[int, int]:
        """Return the positions in the topic that it consumes."""
        indexes = sorted(index for topic_id, index in partitions if topic_id == self._topic_id)
        if not indexes:
            return {}
        version = self.habits.versions.offset_fetch
        topic = self._topic(version) | {"partition_indexes": indexes}
        group = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.generation,
            "topics": [topic],
        }
        answer = await self._ask(
            ApiKey.OFFSET_FETCH, version, {"groups": [group]}, group_is_named=True
        )
        await self._check(answer.groups[0].error_code)
        return {
            partition.partition_index: max(0, partition.committed_offset)
            for partition in answer.groups[0].topics[0].partitions
        }

    # -- requests ----------------------------------------------------------------------------

    async def _check(self, error: int) -> None:
        code = ErrorCode(error)
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            self._model.count(code.name)
            raise StaleEpochError
        if code in {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}:
            # The latter: its session has ended, and the group has become classic.
            self._model.count(code.name)
            raise RejoinError
        if code == ErrorCode.UNRELEASED_INSTANCE_ID:
            self._model.count(code.name)
            self._refusals += 1
            if self._refusals > _MOST_REFUSALS:
                raise FencedError
            await pause(_RESTART_S)
            raise RejoinError
        member_id = self.member_id
        try:
            await super()._check(error)
        except RejoinError:
            assert code == ErrorCode.UNKNOWN_MEMBER_ID, f"no client expects {code.name}"
            if self.habits.heartbeat_version >= _FIRST_OWN_ID_VERSION:
                self.member_id = member_id
            raise
