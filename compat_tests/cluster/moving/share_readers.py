"""Members of a share group in the test's process, and a record of what they got and confirmed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING, Any, Self

from wirebroker.base.clock import SystemClock, pause
from wirebroker.client.addresses import addresses_of
from wirebroker.client.errors import ClientError, NoResponseError
from wirebroker.client.groups.share_consuming import ShareReader, _acquired
from wirebroker.client.groups.share_membership import ShareMembership
from wirebroker.client.groups.share_session import AcknowledgeType
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.tcp_dialer import TcpDialer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wirebroker.client.groups.share_membership import TopicIdPartition
    from wirebroker.client.groups.share_session import AcknowledgedBatch, ShareSession

_TIMEOUT_S = 30.0
_RETRY_S = 0.5
# Errors of a leader that wrote the state in vain: an earlier attempt may have written it.
_UNCLEAR = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
# Kafka's resource type.
_GROUP = 32


class Deliveries:
    """What all members of a group got and confirmed.

    Attributes:
        values: The values of records whose acceptance is confirmed.
        unclear: The values of records whose acceptance may have been stored: the response was lost,
            or the broker did not know whether the state was written.
        repeated: Descriptions of records that were requested, and delivered, after that.
        redelivered: The number of deliveries beyond the first one of a record.
    """

    def __init__(self) -> None:
        self.values: set[str] = set()
        self.unclear: set[str] = set()
        self.repeated: list[str] = []
        self.redelivered = 0
        self._values: dict[tuple[TopicIdPartition, int], str] = {}
        self._confirmed_at: dict[tuple[TopicIdPartition, int], float] = {}

    def deliver(
        self, partition: TopicIdPartition, offset: int, value: str, *, requested_s: float
    ) -> None:
        record = partition, offset
        self.redelivered += record in self._values
        self._values[record] = value
        confirmed_s = self._confirmed_at.get(record)
        if confirmed_s is not None and confirmed_s < requested_s:
            self.repeated.append(f"{value} at {offset} is delivered again")

    def confirm(self, partition: TopicIdPartition, batches: Iterable[AcknowledgedBatch]) -> None:
        now_s = asyncio.get_running_loop().time()
        for offset, value in self._records(partition, batches):
            self._confirmed_at.setdefault((partition, offset), now_s)
            self.values.add(value)

    def doubt(self, partition: TopicIdPartition, batches: Iterable[AcknowledgedBatch]) -> None:
        self.unclear.update(value for _, value in self._records(partition, batches))

    def _records(
        self, partition: TopicIdPartition, batches: Iterable[AcknowledgedBatch]
    ) -> Iterator[tuple[int, str]]:
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                value = self._values.get((partition, offset))
                if value is not None:
                    yield offset, value


class WatchedReader(ShareReader):
    """A member that accepts all records until `stop`, and notes what it gets and confirms."""

    __slots__ = ("_deliveries", "_is_stopping", "_requested_s", "_sent")

    def __init__(
        self,
        client: KafkaClient,
        membership: ShareMembership,
        topics: Sequence[str],
        deliveries: Deliveries,
    ) -> None:
        super().__init__(client, membership, topics, self._accept)
        self._deliveries = deliveries
        self._is_stopping = False
        # By task: the acknowledgements of its request, and when it was sent.
        self._sent: dict[Any, Mapping[TopicIdPartition, Sequence[AcknowledgedBatch]]] = {}
        self._requested_s: dict[Any, float] = {}

    def stop(self) -> None:
        self._is_stopping = True
        self._done.set()

    def _accept(self, _name: object, records: list[Any]) -> tuple[list[AcknowledgeType], bool]:
        return [AcknowledgeType.ACCEPT] * len(records), not self._is_stopping

    def _note_request(self, session: ShareSession) -> None:
        task = asyncio.current_task()
        pending = session.pending if session.is_open else {}
        self._sent[task] = {partition: list(pending[partition]) for partition in pending}
        self._requested_s[task] = asyncio.get_running_loop().time()

    async def _fetch(self, leader: int, session: ShareSession) -> None:
        self._note_request(session)
        with self._doubting_unanswered():
            await super()._fetch(leader, session)

    async def _close(self, leader: int, session: ShareSession) -> None:
        self._note_request(session)
        with self._doubting_unanswered():
            await super()._close(leader, session)

    @contextlib.contextmanager
    def _doubting_unanswered(self) -> Iterator[None]:
        try:
            yield
        except (NoResponseError, asyncio.CancelledError):
            for partition, batches in self._sent.get(asyncio.current_task(), {}).items():
                self._deliveries.doubt(partition, batches)
            raise
        finally:
            self._sent.pop(asyncio.current_task(), None)

    def _count_refused(self, answer: Any, field: str) -> None:
        super()._count_refused(answer, field)
        sent = self._sent.pop(asyncio.current_task(), {})
        for topic in answer.responses:
            for row in topic.partitions:
                partition = (topic.topic_id, row.partition_index)
                code = getattr(row, field)
                if not code:
                    self._deliveries.confirm(partition, sent.get(partition, ()))
                elif code in _UNCLEAR:
                    self._deliveries.doubt(partition, sent.get(partition, ()))

    def _deliver(self, session: ShareSession, partition: TopicIdPartition, row: Any) -> None:
        requested_s = self._requested_s[asyncio.current_task()]
        for delivered in _acquired(row):
            value = bytes(delivered.record.value or b"").decode()
            offset = delivered.record.offset
            self._deliveries.deliver(partition, offset, value, requested_s=requested_s)
        super()._deliver(session, partition, row)


class ShareReaders:
    """Members that run until the block ends; a member that fails is replaced."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], count: int) -> None:
        self.deliveries = Deliveries()
        self._bootstrap = bootstrap
        self._group = group
        self._topics = topics
        self._count = count
        self._readers: dict[int, WatchedReader] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def _client(self, number: int) -> KafkaClient:
        return KafkaClient(
            addresses_of(self._bootstrap),
            timeout_s=_TIMEOUT_S,
            dialer=TcpDialer(),
            clock=SystemClock(),
            random=random.Random(number),
        )

    async def begin_at_the_start(self, node_id: int) -> None:
        """Let the group read its topics from their start; `node_id` is a broker."""
        config = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
        resource = {"resource_type": _GROUP, "resource_name": self._group, "configs": [config]}
        async with self._client(0) as client:
            answer = await client.request_of(
                node_id,
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                {"resources": [resource], "validate_only": False},
            )
        assert answer.responses[0].error_code == 0, answer

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._run(number)) for number in range(self._count)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        for reader in self._readers.values():
            reader.stop()
        await asyncio.gather(*self._tasks)

    async def _run(self, number: int) -> None:
        async with self._client(number) as client:
            while not self._is_over:
                membership = ShareMembership(client, self._group, self._topics)
                reader = WatchedReader(client, membership, self._topics, self.deliveries)
                self._readers[number] = reader
                try:
                    await reader.run()
                except ClientError:
                    await pause(_RETRY_S)
