"""A persister that stores share state in memory, and fails on demand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.share_state.state import StateError, StateSummary

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.coordinator.share_state.state import PersistedState
    from wirebroker.share.persister import StateWrite

    Partition = tuple[bytes, int]

FAILED = StateError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no coordinator")
NO_STATE = StateSummary(0, 0, -1, -1)


class FakePersister:
    """A Persister.

    Attributes:
        states: State epoch, start offset and delivered records of each partition of a group.
        failing: The partitions whose requests fail.
        may_answer: Cleared to delay all results.
    """

    def __init__(self) -> None:
        self.states: dict[tuple[str, bytes, int], tuple[int, int, int]] = {}
        self.failing: set[Partition] = set()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def initialize(
        self, group_id: str, partitions: Mapping[Partition, tuple[int, int]]
    ) -> dict[Partition, StateError | None]:
        await self.may_answer.wait()
        for partition, (epoch, start_offset) in partitions.items():
            if partition not in self.failing:
                self.states[group_id, *partition] = epoch, start_offset, 0
        return self._results(partitions)

    async def delete(
        self, group_id: str, partitions: Collection[Partition]
    ) -> dict[Partition, StateError | None]:
        await self.may_answer.wait()
        for partition in partitions:
            if partition not in self.failing:
                self.states.pop((group_id, *partition), None)
        return self._results(partitions)

    async def read_summary(
        self, group_id: str, partitions: Mapping[Partition, int]
    ) -> dict[Partition, StateSummary | StateError]:
        await self.may_answer.wait()
        return {
            partition: FAILED if partition in self.failing else self._summary(group_id, partition)
            for partition in partitions
        }

    def _summary(self, group_id: str, partition: Partition) -> StateSummary:
        state = self.states.get((group_id, *partition))
        if state is None:
            return NO_STATE
        epoch, start_offset, delivered = state
        return StateSummary(epoch, 3, start_offset, delivered)

    def _results(self, partitions: Collection[Partition]) -> dict[Partition, StateError | None]:
        return {
            partition: FAILED if partition in self.failing else None for partition in partitions
        }

    async def read(
        self, group_id: str, partitions: Mapping[Partition, int]
    ) -> dict[Partition, PersistedState | StateError]:
        raise NotImplementedError("the group coordinator reads no state")

    async def write(
        self, group_id: str, partitions: Mapping[Partition, StateWrite]
    ) -> dict[Partition, StateError | None]:
        raise NotImplementedError("the group coordinator writes no state")


class FakeLatestOffsets:
    """End offsets or errors by topic name and partition."""

    def __init__(self) -> None:
        self.ends: dict[tuple[str, int], Any] = {}

    async def of(self, partitions: Collection[tuple[str, int]]) -> dict[tuple[str, int], Any]:
        return {partition: self.ends.get(partition, 10) for partition in partitions}
