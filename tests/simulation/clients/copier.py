"""Transactional copiers: consume, transform and produce exactly once (KIP-98, KIP-447).

`Copier` reads one partition, and its transactional id fences earlier copiers. The next incarnation
continues after the last transaction; two may run concurrently. group_copier.py shares a topic's
partitions among several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.clients.member import TOPIC
from tests.simulation.clients.promises import Promises, Source
from tests.simulation.clients.target_reader import TARGET, TARGET_PARTITIONS
from tests.simulation.clients.transactional_producer import (
    GROUP_FENCES,
    Client,
    Producer,
    RefusedError,
)
from tests.support.records.committed import committed_records_in
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.clients.model import Model
    from tests.simulation.machine.loop import Process
    from tests.simulation.network.network import Network

OFFSET_FETCH_VERSION = 7
TRANSACTION_TIMEOUT_MS = 20_000
_FETCH_WAIT_MS = 300
_MOST_RECORDS = 5
_LONGEST_WORK_S = 8.0


class Scene(NamedTuple):
    """The environment of copiers."""

    network: Network
    model: Model
    promises: Promises


class Transfer:
    """Copies in consecutive transactions of one producer."""

    def __init__(self, process: Process, scene: Scene, *, name: str, works: float = 0.0) -> None:
        """Prepare.

        Args:
            process: The copier's process.
            scene: The copier's environment.
            name: The transactional id.
            works: Probability of some seconds of work before, and after, committing offsets.
        """
        self.producer = Producer(
            process, scene.network, name=name, timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        self._scene = scene
        self._random = scene.network.random
        self._works = works

    async def copy(
        self, member: Mapping[str, Any], positions: Mapping[int, int]
    ) -> dict[int, int] | None:
        """Copy the available records in one transaction.

        Args:
            member: The group and, if there is one, its member that reads.
            positions: The start offsets by partition.

        Returns:
            The next offsets, or None after an abort: continue at the group's committed offsets.

        Raises:
            RefusedError: The producer is closed.
        """
        random = self._random
        sources, offsets = await self._read(member["group_id"], positions)
        if not sources:
            return dict(positions)
        if random.random() < 0.1:
            await self.producer.look_at_features()
        values = self._scene.promises.begun(sources)
        for index in range(TARGET_PARTITIONS):
            middle = random.randint(0, len(values) - 1)
            for part in filter(None, (values[:middle], values[middle:])):
                await self.producer.produce(TARGET, index, part)
        await self._work()
        is_commit = await self._commit_offsets(member, offsets) and random.random() < 0.85
        await self._work()
        self._scene.promises.ended(values, member["group_id"], offsets, is_commit=is_commit)
        await self.producer.end(is_commit=is_commit)
        self._scene.model.count("commits" if is_commit else "aborts")
        return {**positions, **offsets} if is_commit else None

    async def _work(self) -> None:
        if self._random.random() < self._works:
            await pause(self._random.uniform(0, _LONGEST_WORK_S))

    async def _read(
        self, group: str, positions: Mapping[int, int]
    ) -> tuple[list[Source], dict[int, int]]:
        fetch_offsets = {(TOPIC, index): position for index, position in positions.items()}
        sources: list[Source] = []
        offsets: dict[int, int] = {}
        for partition in await self.producer.fetch(fetch_offsets, max_wait_ms=_FETCH_WAIT_MS):
            index = partition.partition_index
            records = committed_records_in(partition) if partition.records else []
            new = [offset for offset, _ in records if offset >= positions[index]][:_MOST_RECORDS]
            if new:
                sources += [Source(group, index, offset) for offset in new]
                offsets[index] = new[-1] + 1
        return sources, offsets

    async def _commit_offsets(self, member: Mapping[str, Any], offsets: Mapping[int, int]) -> bool:
        try:
            await self.producer.commit_offsets(member, TOPIC, offsets)
        except RefusedError as error:
            if error.code not in GROUP_FENCES:
                raise
            self._scene.model.count(f"fenced by the group: {error}")
            return False
        return True


class Copier:
    """One incarnation that copies one partition."""

    def __init__(self, process: Process, scene: Scene, *, partition: int) -> None:
        self.process = process
        self.partition = partition
        self.group = group_of(partition)
        self._transfer = Transfer(process, scene, name=self.group)
        self._model = scene.model

    async def run(self) -> None:
        producer = self._transfer.producer
        try:
            await producer.begin()
            positions = None
            while True:
                if positions is None:
                    positions = {
                        self.partition: await committed(producer, self.group, self.partition)
                    }
                positions = await self._transfer.copy({"group_id": self.group}, positions)
        except RefusedError as error:
            self._model.count(str(error))


def group_of(partition: int) -> str:
    """Return the group id of a partition's copiers, which is also their transactional id."""
    return f"copier-{partition}"


async def committed(client: Client, group: str, partition: int) -> int:
    """Return a group's committed offset of a partition, once it is stable."""
    topic = {"name": TOPIC, "partition_indexes": [partition]}
    request = {"group_id": group, "topics": [topic], "require_stable": True}
    answer = await client.ask(ApiKey.OFFSET_FETCH, request, version=OFFSET_FETCH_VERSION)
    return max(0, answer.topics[0].partitions[0].committed_offset)
