"""Members of a share group that fetch and acknowledge records: raw requests, in several processes.

Each member sends one ShareFetch at a time, which acknowledges the records of the one before.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.support.protocol.raw_client import RawClient
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

_VERSION: Final = 2
_MAX_WAIT_MS: Final = 100
_MOST_BYTES: Final = 50 << 20
_ACCEPT: Final = 1
_JOINS: Final = 100
_JOIN_PAUSE_S: Final = 0.1
_GIVE_UP_S: Final = 120.0


class Consumption(NamedTuple):
    """A share group that reads a topic to its end.

    Attributes:
        records: The number of records in the topic.
        most_records: The limit of a fetch, Kafka's max.poll.records.
    """

    port: int
    group: str
    topic: str
    partitions: int
    records: int
    most_records: int = 500


def consume(wanted: Consumption, members: int, processes: int) -> float:
    """Read and acknowledge all records; return the seconds from the first fetch to the last.

    Raises:
        RuntimeError: A process failed.
    """
    context = multiprocessing.get_context("spawn")
    acknowledged = context.Value("q", 0)
    results = context.Queue()
    shares = [range(number, members, processes) for number in range(processes)]
    workers = [
        context.Process(target=_run, args=(wanted, list(share), acknowledged, results))
        for share in shares
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(_GIVE_UP_S)
    if any(worker.exitcode for worker in workers):
        for worker in workers:
            worker.kill()
        raise RuntimeError(f"{wanted.group} has read {acknowledged.value} of {wanted.records}")
    times = [results.get(timeout=_GIVE_UP_S) for _ in workers]
    return max(end for _, end in times) - min(start for start, _ in times)


def _run(
    wanted: Consumption, numbers: list[int], acknowledged: Synchronized[int], results: Any
) -> None:
    results.put(asyncio.run(_consume(wanted, numbers, acknowledged)))


async def _consume(
    wanted: Consumption, numbers: list[int], acknowledged: Synchronized[int]
) -> tuple[float, float]:
    members = [_Member(wanted, number, acknowledged) for number in numbers]
    await asyncio.gather(*(member.join() for member in members))
    start = time.monotonic()
    async with asyncio.timeout(_GIVE_UP_S):
        ends = await asyncio.gather(*(member.read() for member in members))
    return start, max(ends)


class _Member:
    def __init__(self, wanted: Consumption, number: int, acknowledged: Synchronized[int]) -> None:
        self._wanted = wanted
        self._name = f"{wanted.group}-{number:020d}"
        self._acknowledged = acknowledged
        self._assigned: list[Any] = []
        self._client: RawClient

    async def join(self) -> None:
        """Join the group, until it has assigned partitions."""
        self._client = await RawClient.connect(("127.0.0.1", self._wanted.port))
        epoch = 0
        for _ in range(_JOINS):
            body = {
                "group_id": self._wanted.group,
                "member_id": self._name,
                "member_epoch": epoch,
                "subscribed_topic_names": [self._wanted.topic],
            }
            answer = await self._client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, body)
            if answer.error_code == ErrorCode.NONE:
                epoch = answer.member_epoch
                if answer.assignment is not None:
                    self._assigned = answer.assignment.topic_partitions
                if self._assigned:
                    return
            await pause(_JOIN_PAUSE_S)
        raise RuntimeError(f"{self._name} was assigned no partitions: {answer}")

    async def read(self) -> float:
        """Fetch until all records are acknowledged; return when the last of this member was."""
        epoch, last = 0, time.monotonic()
        acquired: dict[tuple[bytes, int], list[Any]] = {}
        while self._acknowledged.value < self._wanted.records:
            answer = await self._client.ask(
                ApiKey.SHARE_FETCH, _VERSION, self._request(epoch, acquired)
            )
            assert answer.error_code == ErrorCode.NONE, answer.error_message
            count = _count(acquired)
            acquired = {}
            for topic in answer.responses:
                for partition in topic.partitions:
                    codes = partition.error_code, partition.acknowledge_error_code
                    assert codes == (0, 0), codes
                    if partition.acquired_records:
                        key = topic.topic_id, partition.partition_index
                        acquired[key] = partition.acquired_records
            if count:
                last = time.monotonic()
                with self._acknowledged.get_lock():
                    self._acknowledged.value += count
            epoch += 1
        await self._client.close()
        return last

    def _request(self, epoch: int, acquired: dict[tuple[bytes, int], list[Any]]) -> dict[str, Any]:
        topics = [
            {
                "topic_id": topic.topic_id,
                "partitions": [
                    {
                        "partition_index": index,
                        "acknowledgement_batches": [
                            {
                                "first_offset": records.first_offset,
                                "last_offset": records.last_offset,
                                "acknowledge_types": [_ACCEPT],
                            }
                            for records in acquired.get((topic.topic_id, index), ())
                        ],
                    }
                    for index in topic.partitions
                    if epoch == 0 or (topic.topic_id, index) in acquired
                ],
            }
            for topic in self._assigned
        ]
        return {
            "group_id": self._wanted.group,
            "member_id": self._name,
            "share_session_epoch": epoch,
            "max_wait_ms": _MAX_WAIT_MS,
            "min_bytes": 1,
            "max_bytes": _MOST_BYTES,
            "max_records": self._wanted.most_records,
            "batch_size": self._wanted.most_records,
            "topics": [topic for topic in topics if topic["partitions"]],
        }


def _count(acquired: dict[tuple[bytes, int], list[Any]]) -> int:
    return sum(
        records.last_offset - records.first_offset + 1
        for found in acquired.values()
        for records in found
    )
