"""Clients of simulated replicas: an idempotent writer and a reader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import iterate_batches, iterate_records

if TYPE_CHECKING:
    from tests.simulation.cluster.replica_world import ReplicaWorld

_FETCH_VERSION: Final = 12
_DOUBLED: Final = 0.2


class IdempotentWriter:
    """Sends each batch until it is acknowledged, sometimes twice concurrently."""

    def __init__(self, world: ReplicaWorld, index: int) -> None:
        self._world = world
        self._index = index
        self._sequence = 0

    async def run(self) -> None:
        world = self._world
        while not world.is_over:
            value = b"sequence %d of %d" % (self._sequence, self._index)
            copies = 2 if world.random.random() < _DOUBLED else 1
            if any(await asyncio.gather(*(self._send(value) for _ in range(copies)))):
                self._sequence += 1
            await pause(world.random.uniform(0.0, 0.3))

    async def _send(self, value: bytes) -> bool:
        world = self._world
        await pause(world.delay_s())
        member = world.taken_for_leader(self._index)
        if member is None:
            return False
        process = world.processes[member.node_id]
        header = {
            "producer_id": 1 + self._index,
            "producer_epoch": 0,
            "base_sequence": self._sequence,
        }
        task = process.spawn(member.produce(value, index=self._index, timeout_ms=2_000, **header))
        task.add_done_callback(world.note(self._index, value))
        done, _ = await asyncio.wait([task], timeout=4.0)
        return bool(done) and not task.cancelled() and task.exception() is None


class Reader:
    """Reads a partition from its current leader.

    Attributes:
        seen: The value that it read at each offset.
    """

    def __init__(self, world: ReplicaWorld, index: int) -> None:
        self._world = world
        self._index = index
        self._position = 0
        self.seen: dict[int, bytes | None] = {}

    async def run(self) -> None:
        world = self._world
        while not world.is_over:
            await pause(world.random.uniform(0.1, 0.6))
            member = world.leader(self._index)
            if member is None:
                continue
            process = world.processes[member.node_id]
            task = process.spawn(member.ask(ApiKey.FETCH, _FETCH_VERSION, self._question()))
            done, _ = await asyncio.wait([task], timeout=2.0)
            if done and not task.cancelled() and task.exception() is None:
                self._take(task.result())

    def _question(self) -> dict[str, Any]:
        partition = {
            "partition": self._index,
            "fetch_offset": self._position,
            "partition_max_bytes": 1 << 20,
        }
        topics = [{"topic": "t", "partitions": [partition]}]
        limits = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20}
        return {"replica_id": -1, **limits, "isolation_level": 0, "topics": topics}

    def _take(self, answer: Any) -> None:
        for topic in answer.responses:
            for row in topic.partitions:
                location = f"offset {self._position} of {self._index}"
                assert row.error_code != ErrorCode.OFFSET_OUT_OF_RANGE, f"{location} is gone again"
                for offset, value in values_at(bytes(row.records or b"")).items():
                    before = self.seen.setdefault(offset, value)
                    assert before == value, f"offset {offset}, which was read, has changed"
                    self._position = max(self._position, offset + 1)


def values_at(batches: bytes) -> dict[int, bytes | None]:
    view = memoryview(batches)
    return {
        header.base_offset: next(
            iter(
                iterate_records(view[position : position + header.size], header, max_bytes=1 << 20)
            )
        ).value
        for position, header in iterate_batches(view)
    }
