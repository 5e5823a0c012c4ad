"""Replicas whose records are searched by time while their logs are truncated.

weather, deaths   as in replica_world.py
promises          also: a record that a search by time returns is committed, and the first at or
                  after that time (KIP-79); of the largest timestamp, the first with it (KIP-734).
                  Errors are those of Kafka after a change of leaders
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.simulation.cluster.replica_world import ReplicaWorld
from tests.support.replicas.broker_cluster import Member
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.codecs.special_offsets import MAX_TIMESTAMP

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Coroutine, Mapping

_LIST_OFFSETS_VERSION: Final = 10
# Of the first record; later ones follow in the simulation's time.
_FIRST_MS: Final = 1_700_000_000_000
_OLDEST_MS: Final = 20_000
_REFUSALS: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class _Found(NamedTuple):
    """A result: `asked_ms` is a time or MAX_TIMESTAMP."""

    asked_ms: int
    found_ms: int
    offset: int


def _time_ms() -> int:
    return _FIRST_MS + int(asyncio.get_running_loop().time() * 1000)


class StampedMember(Member):
    """A member whose records have the simulation's time."""

    async def produce(
        self, value: bytes, *, index: int = 0, timeout_ms: int = 5_000, **header: Any
    ) -> int:
        header["timestamp_ms"] = _time_ms()
        return await super().produce(value, index=index, timeout_ms=timeout_ms, **header)


class Searcher:
    """Searches a partition by time, on its leader or what an old client takes for it.

    Attributes:
        found: The results.
    """

    def __init__(self, world: SearchedWorld, index: int) -> None:
        self._world = world
        self._index = index
        self.found: list[_Found] = []

    async def run(self) -> None:
        world = self._world
        while not world.is_over:
            await pause(world.random.uniform(0.0, 0.2))
            member = world.taken_for_leader(self._index)
            if member is None:
                continue
            asked_ms = _time_ms() - world.random.randrange(_OLDEST_MS)
            if world.random.random() < 0.5:
                asked_ms = MAX_TIMESTAMP
            process = world.processes[member.node_id]
            question = self._question(asked_ms)
            task = process.spawn(member.ask(ApiKey.LIST_OFFSETS, _LIST_OFFSETS_VERSION, question))
            done, _ = await asyncio.wait([task], timeout=4.0)
            if done and not task.cancelled():
                self._take(asked_ms, task)

    def _question(self, asked_ms: int) -> dict[str, Any]:
        partition = {
            "partition_index": self._index,
            "current_leader_epoch": -1,
            "timestamp": asked_ms,
        }
        topics = [{"name": "t", "partitions": [partition]}]
        return {"replica_id": -1, "isolation_level": 0, "topics": topics, "timeout_ms": 1_000}

    def _take(self, asked_ms: int, task: asyncio.Task[Any]) -> None:
        error = task.exception()
        assert error is None or isinstance(error, KafkaError), error
        if error is not None:
            return
        (topic,) = task.result().topics
        (row,) = topic.partitions
        if row.error_code:
            name = ErrorCode(row.error_code).name
            assert row.error_code in _REFUSALS, f"{name} for {asked_ms} in {self._index}"
        elif row.offset >= 0:
            self.found.append(_Found(asked_ms, row.timestamp, row.offset))


class SearchedWorld(ReplicaWorld):
    """One schedule; every batch has an entry in the indexes, and segments are short."""

    member_kind = StampedMember
    settings: Mapping[str, str] = {"log.index.interval.bytes": "1", "log.roll.ms": "2000"}

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._searchers = [Searcher(self, index) for index in range(len(self.readers))]

    def totals(self) -> Counter[str]:
        totals = super().totals()
        totals["records found"] = sum(len(searcher.found) for searcher in self._searchers)
        return totals

    def _clients(self) -> list[Coroutine[Any, Any, None]]:
        searches = [searcher.run() for searcher in self._searchers for _ in range(2)]
        return [*super()._clients(), *searches]

    def _check_stored(self, index: int, batches: bytes) -> None:
        super()._check_stored(index, batches)
        times = {
            header.base_offset: header.max_timestamp
            for _, header in iterate_batches(memoryview(batches))
        }
        for found in self._searchers[index].found:
            assert times.get(found.offset) == found.found_ms, f"{found} is no record"
            asked_ms = found.found_ms if found.asked_ms == MAX_TIMESTAMP else found.asked_ms
            first = next((offset for offset, ms in times.items() if ms >= asked_ms), None)
            assert first == found.offset, f"{found}, but {first} is at that time"
