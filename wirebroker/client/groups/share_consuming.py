"""Reading of records as a member of a share group, with an acknowledgement for each record.

One task for each broker fetches from its partitions. An acknowledgement is sent with the next fetch
or when the session closes; the broker then releases what was acquired and not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.client.errors import PASSING, ClientError, check
from wirebroker.client.groups.share_session import ShareSession, acknowledged_batches
from wirebroker.client.records.fetched_batches import fetched_batches
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import iterate_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from wirebroker.client.groups.share_membership import ShareMembership, TopicIdPartition
    from wirebroker.client.groups.share_session import AcknowledgeType
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.record import Record

    # Returns acknowledgements of the first records, and whether to continue, which needs all.
    Take: TypeAlias = Callable[
        [TopicPartition, list["DeliveredRecord"]], tuple[list[AcknowledgeType], bool]
    ]

_WAIT_MS: Final = 500
# Pause before a retry, and before partitions without a leader are looked up again.
_AGAIN_S: Final = 0.1
_MISSING_S: Final = 0.5
# Timeout of the last acknowledgements.
_GOODBYE_S: Final = 5.0
_SESSION_LOST: Final = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
_MOVED: Final = PASSING | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
}


class DeliveredRecord(NamedTuple):
    """An acquired record, and how often it was delivered, with this time."""

    record: Record
    delivery_count: int


class ShareReader:
    """A reader of a member's partitions.

    Attributes:
        refused: Number of acknowledgement requests that brokers refused or that were lost; their
            records may be delivered again.
    """

    __slots__ = (
        "_by_leader",
        "_changed",
        "_client",
        "_done",
        "_failing_since",
        "_membership",
        "_names",
        "_sessions",
        "_take",
        "_topics",
        "_working",
        "refused",
    )

    def __init__(
        self, client: KafkaClient, membership: ShareMembership, topics: Sequence[str], take: Take
    ) -> None:
        """Use a membership in these topics."""
        self.refused = 0
        self._client = client
        self._membership = membership
        self._topics = list(topics)
        self._take = take
        self._names: dict[TopicIdPartition, TopicPartition] = {}
        self._by_leader: dict[int, list[TopicIdPartition]] = {}
        self._sessions: dict[int, ShareSession] = {}
        # Set if the assignment or a leader changed.
        self._changed = asyncio.Event()
        self._done = asyncio.Event()
        self._failing_since: float | None = None
        self._working: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Read until `take` ends it; then acknowledge, close the sessions and leave the group.

        Raises:
            ClientError: Brokers do not respond, or refuse the member.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                self._working = {tasks.create_task(self._beat())}
                self._working.add(tasks.create_task(self._lead(tasks)))
                await self._done.wait()
                for task in self._working:
                    task.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            try:
                await self._leave()
            finally:
                self._membership.abort()

    # --- membership

    async def _beat(self) -> None:
        while True:
            if await self._membership.beat():
                self._changed.set()
            await pause(self._membership.interval_s)

    async def _leave(self) -> None:
        membership = self._membership
        if not membership.is_member:
            return
        try:
            async with asyncio.timeout(_GOODBYE_S):
                closing = [self._close(*item) for item in self._sessions.items()]
                results = await asyncio.gather(*closing, return_exceptions=True)
                await membership.leave()
        except TimeoutError:
            raise ClientError(
                f"group {membership.group} does not respond: the last records may be read again"
            ) from None
        for result in results:
            if result is not None:
                raise result

    async def _close(self, leader: int, session: ShareSession) -> None:
        if not session.is_open:
            return
        answer = await self._client.request_of(
            leader, ApiKey.SHARE_ACKNOWLEDGE, session.closing_body()
        )
        self._count_refused(answer, "error_code")

    # --- leaders

    async def _lead(self, tasks: asyncio.TaskGroup) -> None:
        """Find the leaders after each change, and start a task for each new one."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._find_leaders()
            for leader in self._by_leader:
                if leader not in self._sessions:
                    membership = self._membership
                    session = ShareSession(membership.group, membership.member_id)
                    self._sessions[leader] = session
                    self._working.add(tasks.create_task(self._follow(leader, session)))

    async def _find_leaders(self) -> None:
        by_leader: dict[int, list[TopicIdPartition]] = defaultdict(list)
        missing = set(self._membership.assigned)
        if missing:
            answer = await self._client.metadata(self._topics)
            for topic in answer.topics:
                for row in topic.partitions:
                    partition = (topic.topic_id, row.partition_index)
                    if partition in missing and row.leader_id >= 0:
                        by_leader[row.leader_id].append(partition)
                        self._names[partition] = TopicPartition(topic.name, row.partition_index)
                        missing.remove(partition)
        self._by_leader = by_leader
        if missing:
            await self._retry_leaders(_MISSING_S)

    async def _retry_leaders(self, delay_s: float = _AGAIN_S) -> None:
        await pause(delay_s)
        self._changed.set()

    # --- records

    async def _follow(self, leader: int, session: ShareSession) -> None:
        """Fetch from one broker while it leads partitions."""
        while not self._done.is_set() and leader in self._by_leader:
            try:
                await self._fetch(leader, session)
                self._failing_since = None
            except ClientError as error:
                self.refused += len(session.pending)
                session.reset()
                if error.code or not self._may_retry():
                    raise
                await self._retry_leaders()
        if not self._done.is_set():
            del self._sessions[leader]
            await self._close(leader, session)
            if leader in self._by_leader:  # it leads partitions again
                self._changed.set()

    def _may_retry(self) -> bool:
        now = self._client.clock.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return now - self._failing_since < self._client.timeout_s

    async def _fetch(self, leader: int, session: ShareSession) -> None:
        body = session.fetch_body(self._by_leader[leader], _WAIT_MS)
        answer = await self._client.request_of(leader, ApiKey.SHARE_FETCH, body)
        if answer.error_code in _SESSION_LOST or answer.error_code in PASSING:
            self.refused += len(session.pending)
            session.reset()
            await self._retry_leaders()
            return
        check(answer.error_code, "records cannot be fetched", answer.error_message)
        session.advance()
        self._count_refused(answer, "acknowledge_error_code")
        for topic in answer.responses:
            for row in topic.partitions:
                partition = (topic.topic_id, row.partition_index)
                if row.error_code in _MOVED:
                    await self._retry_leaders()
                    continue
                check(row.error_code, f"{self._names[partition]} cannot be fetched")
                if row.acquired_records and not self._done.is_set():
                    self._deliver(session, partition, row)

    def _deliver(self, session: ShareSession, partition: TopicIdPartition, row: Any) -> None:
        """Pass on acquired records, and acknowledge them as `take` says."""
        name = self._names[partition]
        acquired = [
            range(acquired.first_offset, acquired.last_offset + 1)
            for acquired in row.acquired_records
        ]
        try:
            records = list(_acquired(row))
        except KafkaError as error:
            raise ClientError(f"{name}: {error}", code=error.code) from error
        types, goes_on = self._take(name, records) if records else ([], True)
        if not goes_on:
            self._done.set()
        until = acquired[-1].stop
        if len(types) < len(records):
            until = records[len(types)].record.offset
        offsets = [delivered.record.offset for delivered in records]
        decided = dict(zip(offsets, types, strict=False))
        session.acknowledge(partition, acknowledged_batches(acquired, decided, until))

    def _count_refused(self, answer: Any, field: str) -> None:
        self.refused += sum(
            getattr(row, field) != ErrorCode.NONE
            for topic in answer.responses
            for row in topic.partitions
        )


def _acquired(row: Any) -> Iterator[DeliveredRecord]:
    """Yield a partition's records whose offsets are acquired."""
    remaining = list(row.acquired_records)
    for header, batch in fetched_batches(memoryview(row.records or b"")):
        if header.is_control:
            continue
        for record in iterate_records(batch, header):
            while remaining and remaining[0].last_offset < record.offset:
                remaining.pop(0)
            if remaining and remaining[0].first_offset <= record.offset:
                yield DeliveredRecord(record, remaining[0].delivery_count)
