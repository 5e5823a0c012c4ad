"""A consumer group member that behaves like Kafka's clients: join, sync, fetch, commit, leave.

    find coordinator -> JoinGroup -> (the leader assigns) SyncGroup -> OffsetFetch
        -> fetch, process, commit; a heartbeat now and then
        -> on a rebalance: commit what is processed, and join again

It handles errors as Kafka's ConsumerCoordinator does and reports unexpected ones. A restart loses
its member id; a static member returns with its instance id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.clients.consumer_protocol import assignment, read_assignment, subscription
from tests.simulation.network.link import Link, LinkLostError
from tests.support.protocol.requests import FETCH_VERSION, fetch_request
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import iterate_batches, iterate_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.clients.model import Model
    from tests.simulation.machine.loop import Process
    from tests.simulation.network.network import Network

TOPIC = "t"
_REQUEST_TIMEOUT_S = 5.0
_BACKOFF_S = 0.1
_FETCH_WAIT_MS = 300
_FIRST_SYNC_WITH_PROTOCOL = 5

_LOOK_AGAIN = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class Versions(NamedTuple):
    find_coordinator: int
    join_group: int
    sync_group: int
    heartbeat: int
    leave_group: int
    offset_commit: int
    offset_fetch: int


# Kafka 1.0, 2.3 (static members), 3.7 and 4.3.
AGES = (
    Versions(1, 2, 1, 1, 1, 3, 3),
    Versions(2, 5, 3, 3, 3, 7, 5),
    Versions(4, 9, 5, 4, 5, 8, 8),
    Versions(6, 9, 5, 4, 5, 10, 10),
)
FIRST_STATIC_AGE = 1


@dataclass(frozen=True)
class Habits:
    """The configuration of a member."""

    versions: Versions
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_s: float
    protocols: tuple[str, ...]
    instance: str | None = None


class RejoinError(Exception):
    """The member must rejoin."""


class FencedError(Exception):
    """Another incarnation has replaced the member."""


class Member:
    """One consumer.

    Attributes:
        generation: Its generation; -1 while it has none.
        owned: The partitions that it reads.
    """

    def __init__(
        self,
        process: Process,
        network: Network,
        model: Model,
        *,
        group: str,
        topic_id: bytes,
        partition_count: int,
        habits: Habits,
    ) -> None:
        self.process = process
        self.group = group
        self.habits = habits
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[int, ...] = ()
        self._network = network
        self._model = model
        self._topic_id = topic_id
        self._partition_count = partition_count
        self._coordinator: Link | None = None
        self._leader: Link | None = None
        self._positions: dict[int, int] = {}
        self._is_told_to_leave = False

    def tell_to_leave(self) -> None:
        """Make it leave the group after it has committed what it processed."""
        self._is_told_to_leave = True

    def claims(self) -> frozenset[tuple[bytes, int]]:
        """Return the partitions that it owns, by topic id."""
        return frozenset((self._topic_id, index) for index in self.owned)

    async def run(self) -> None:
        while not self._is_told_to_leave:
            try:
                await self._join()
                await self._consume()
            except RejoinError:
                self.owned = ()
            except LinkLostError:
                await pause(_BACKOFF_S)
            except FencedError:
                self._model.count("fenced")
                self.owned = ()
                return
        await self._leave()

    # -- membership --------------------------------------------------------------------------

    async def _join(self) -> None:
        habits = self.habits
        answer = await self._ask(
            ApiKey.JOIN_GROUP,
            habits.versions.join_group,
            {
                "session_timeout_ms": habits.session_timeout_ms,
                "rebalance_timeout_ms": habits.rebalance_timeout_ms,
                "member_id": self.member_id,
                "protocol_type": "consumer",
                "protocols": [
                    {"name": name, "metadata": subscription(TOPIC)} for name in habits.protocols
                ],
            },
            timeout_s=habits.rebalance_timeout_ms / 1000 + _REQUEST_TIMEOUT_S,
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            raise RejoinError
        await self._check(answer.error_code)
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        assignments: list[dict[str, Any]] = []
        if answer.leader == answer.member_id and not answer.skip_assignment:
            assignments = self._assign(answer.protocol_name, answer.members)
        version = habits.versions.sync_group
        sync: dict[str, Any] = {"assignments": assignments}
        if version >= _FIRST_SYNC_WITH_PROTOCOL:
            sync |= {"protocol_type": "consumer", "protocol_name": answer.protocol_name}
        synced = await self._ask(ApiKey.SYNC_GROUP, version, self._as_member(sync))
        await self._check(synced.error_code)
        self.owned = read_assignment(synced.assignment)

    def _assign(self, protocol: str, members: Any) -> list[dict[str, Any]]:
        assert protocol in self.habits.protocols, f"{protocol} was not proposed"
        ids = sorted(member.member_id for member in members)
        assert self.member_id in ids, "the leader is a member"
        shares: list[list[int]] = [[] for _ in ids]
        for partition in range(self._partition_count):
            if protocol == "range":
                shares[partition * len(ids) // self._partition_count].append(partition)
            else:
                shares[partition % len(ids)].append(partition)
        return [
            {"member_id": member_id, "assignment": assignment(TOPIC, share)}
            for member_id, share in zip(ids, shares, strict=True)
        ]

    async def _heartbeat(self) -> None:
        version = self.habits.versions.heartbeat
        answer = await self._ask(ApiKey.HEARTBEAT, version, self._as_member({}))
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            await self._commit()
        await self._check(answer.error_code)

    async def _leave(self) -> None:
        version = self.habits.versions.leave_group
        identity = {"member_id": self.member_id}
        if version >= 3:
            identity = {"members": [identity | self._instance()]}  # type: ignore[dict-item]
        try:
            await self._ask(ApiKey.LEAVE_GROUP, version, identity)
        except LinkLostError:
            return

    # -- consuming ---------------------------------------------------------------------------

    async def _consume(self) -> None:
        clock = self.process.loop
        self._positions = await self._committed() if self.owned else {}
        next_heartbeat_s = clock.time() + self.habits.heartbeat_interval_s
        while not self._is_told_to_leave:
            try:
                if clock.time() >= next_heartbeat_s:
                    next_heartbeat_s = clock.time() + self.habits.heartbeat_interval_s
                    await self._heartbeat()
                if not self.owned:
                    await pause(max(0.0, next_heartbeat_s - clock.time()))
                elif await self._process():
                    await self._commit()
            except LinkLostError:
                await pause(_BACKOFF_S)

    async def _committed(self) -> dict[int, int]:
        version = self.habits.versions.offset_fetch
        topic = self._topic(version) | {"partition_indexes": list(self.owned)}
        request: dict[str, Any] = {"topics": [topic]}
        if version >= 8:
            request = {"groups": [{"group_id": self.group, "topics": [topic]}]}
        while True:
            try:
                answer = await self._ask(
                    ApiKey.OFFSET_FETCH, version, request, group_is_named=version >= 8
                )
            except LinkLostError:
                await pause(_BACKOFF_S)
                continue
            of_group = answer.groups[0] if version >= 8 else answer
            if of_group.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await pause(_BACKOFF_S)
                continue
            await self._check(of_group.error_code)
            partitions = of_group.topics[0].partitions
            return {
                partition.partition_index: max(0, partition.committed_offset)
                for partition in partitions
            }

    async def _process(self) -> bool:
        if self._leader is None or self._leader.is_closed:
            self._leader = self._network.open(self.process)
        positions = self._positions
        request = fetch_request(
            {(TOPIC, index): offset for index, offset in positions.items()},
            max_wait_ms=_FETCH_WAIT_MS,
        )
        answer = await self._leader.ask(
            ApiKey.FETCH, FETCH_VERSION, request, timeout_s=_REQUEST_TIMEOUT_S
        )
        has_found = False
        for partition in answer.responses[0].partitions:
            assert partition.error_code == ErrorCode.NONE, partition
            index = partition.partition_index
            for offset, value in _records(partition.records or b""):
                if offset >= positions[index]:
                    assert offset == positions[index], f"{positions[index]} is missing in {index}"
                    self._model.holds(index, offset, value)
                    self._model.processed(self.group, index, offset)
                    positions[index] = offset + 1
                    has_found = True
        return has_found

    async def _commit(self) -> None:
        """Commit what is processed, with retries until it succeeds or is refused."""
        version = self.habits.versions.offset_commit
        partitions = [
            {"partition_index": index, "committed_offset": offset, "committed_metadata": "m"}
            for index, offset in self._positions.items()
        ]
        if not partitions:
            return
        topic = self._topic(version) | {"partitions": partitions}
        fields = {"topics": [topic], "generation_id_or_member_epoch": self.generation}
        while True:
            try:
                answer = await self._ask(
                    ApiKey.OFFSET_COMMIT, version, self._as_member(fields, has_generation=False)
                )
            except LinkLostError:
                await pause(_BACKOFF_S)
                continue
            errors = {partition.error_code for partition in answer.topics[0].partitions}
            (error,) = errors
            if error == ErrorCode.NONE:
                return
            if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await pause(_BACKOFF_S)
                continue
            try:
                await self._check(error)
            except LinkLostError:
                continue

    # -- requests ----------------------------------------------------------------------------

    async def _check(self, error: int) -> None:
        """Raise the exception that an error requires, if any.

        Raises:
            RejoinError, LinkLostError, FencedError: The error requires it.
        """
        code = ErrorCode(error)
        if code == ErrorCode.NONE:
            return
        self._model.count(code.name)
        if code in _LOOK_AGAIN or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            if code in _LOOK_AGAIN and self._coordinator is not None:
                self._coordinator.close()
            raise LinkLostError
        if code == ErrorCode.FENCED_INSTANCE_ID:
            raise FencedError
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise RejoinError
        else:
            assert code == ErrorCode.ILLEGAL_GENERATION, f"no client expects {code.name}"
        self.generation = -1
        raise RejoinError

    async def _ask(
        self,
        key: ApiKey,
        version: int,
        request: Mapping[str, Any],
        *,
        timeout_s: float = _REQUEST_TIMEOUT_S,
        group_is_named: bool = False,
    ) -> Any:
        if self._coordinator is None or self._coordinator.is_closed:
            self._coordinator = await self._find_coordinator()
        instance = self._instance() if key is ApiKey.JOIN_GROUP else {}
        named = {} if group_is_named else {"group_id": self.group}
        return await self._coordinator.ask(
            key, version, {**named, **instance, **request}, timeout_s=timeout_s
        )

    async def _find_coordinator(self) -> Link:
        version = self.habits.versions.find_coordinator
        named = {"coordinator_keys": [self.group]} if version >= 4 else {"key": self.group}
        while True:
            link = self._network.open(self.process)
            try:
                answer = await link.ask(
                    ApiKey.FIND_COORDINATOR,
                    version,
                    {**named, "key_type": 0},
                    timeout_s=_REQUEST_TIMEOUT_S,
                )
            except LinkLostError:
                await pause(_BACKOFF_S)
                continue
            coordinator = answer.coordinators[0] if version >= 4 else answer
            if coordinator.error_code == ErrorCode.NONE:
                return link
            assert coordinator.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE, coordinator
            await pause(_BACKOFF_S)

    def _instance(self) -> dict[str, str]:
        instance = self.habits.instance
        return {} if instance is None else {"group_instance_id": instance}

    def _as_member(self, fields: dict[str, Any], *, has_generation: bool = True) -> dict[str, Any]:
        identity: dict[str, Any] = {"member_id": self.member_id, **self._instance()}
        if has_generation:
            identity["generation_id"] = self.generation
        return identity | fields

    def _topic(self, version: int) -> dict[str, Any]:
        return {"topic_id": self._topic_id} if version >= 10 else {"name": TOPIC}


def _records(data: bytes) -> list[tuple[int, bytes]]:
    view = memoryview(data)
    return [
        (record.offset, record.value or b"")
        for position, header in iterate_batches(view)
        for record in iterate_records(view[position : position + header.size], header)
    ]
