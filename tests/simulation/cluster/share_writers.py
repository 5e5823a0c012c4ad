"""A transactional producer of simulated replicas, which writes the markers itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from tests.support.records.batches import batch
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.cluster.share_world import ShareWorld
    from tests.simulation.cluster.sharing_member import SharingMember

_PRODUCE_VERSION: Final = 11
_MARKERS_VERSION: Final = 1
_PATIENCE_S: Final = 4.0
_FIRST_PRODUCER_ID: Final = 1_000


class TransactionWriter:
    """Writes transactions of one partition, each with a separate producer id.

    A transaction is ended before the next one begins; `finish` ends the last one.
    """

    def __init__(self, world: ShareWorld, index: int) -> None:
        self._world = world
        self._index = index
        # What remains to be sent of the present transaction.
        self._pending: list[tuple[Any, ...]] = []

    async def run(self) -> None:
        world = self._world
        while not world.is_over:
            if self._pending:
                await self._send()
                continue
            await pause(world.random.uniform(0.3, 1.5))
            self._begin()

    async def finish(self) -> None:
        """End the last transaction, when the faults are over."""
        while self._pending:
            await self._send()

    def _begin(self) -> None:
        world = self._world
        number = world.next_number()
        values = [
            b"%d of transaction %d" % (place, number) for place in range(world.random.randint(1, 3))
        ]
        producer_id = _FIRST_PRODUCER_ID + number
        is_commit = world.random.random() < 0.6
        self._pending = [
            *((self._produce, value, producer_id, place) for place, value in enumerate(values)),
            (self._end, producer_id, values, is_commit),
        ]

    async def _send(self) -> None:
        world = self._world
        await pause(world.delay_s())
        member = world.leader(self._index)
        if member is None:
            await pause(0.1)
            return
        send, *args = self._pending[0]
        task = world.processes[member.node_id].spawn(send(member, *args))
        done, _ = await asyncio.wait([task], timeout=_PATIENCE_S)
        if done and not task.cancelled() and task.result():
            del self._pending[0]
        else:
            await pause(0.2)

    async def _produce(
        self, member: SharingMember, value: bytes, producer_id: int, sequence: int
    ) -> bool:
        records = batch(
            value,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = {"index": self._index, "records": records}
        body = {
            "transactional_id": f"id-{producer_id}",
            "acks": -1,
            "timeout_ms": 2_000,
            "topic_data": [{"name": "t", "partition_data": [data]}],
        }
        answer = await member.ask(ApiKey.PRODUCE, _PRODUCE_VERSION, body)
        (partition,) = answer.responses[0].partition_responses
        self._world.count(ApiKey.PRODUCE, ErrorCode(partition.error_code))
        return partition.error_code == ErrorCode.NONE

    async def _end(
        self, member: SharingMember, producer_id: int, values: list[bytes], is_commit: bool
    ) -> bool:
        self._world.transaction_ended(values, is_commit=is_commit)
        marker = {
            "producer_id": producer_id,
            "producer_epoch": 0,
            "transaction_result": is_commit,
            "topics": [{"name": "t", "partition_indexes": [self._index]}],
            "coordinator_epoch": 0,
        }
        answer = await member.ask(ApiKey.WRITE_TXN_MARKERS, _MARKERS_VERSION, {"markers": [marker]})
        error = answer.markers[0].topics[0].partitions[0].error_code
        self._world.count(ApiKey.WRITE_TXN_MARKERS, ErrorCode(error))
        return error == ErrorCode.NONE
