"""Fetches partitions from one leader: one connection, one request at a time.

Between partitions the event loop serves other clients.

Source: Kafka's AbstractFetcherThread, ReplicaFetcherThread, RemoteLeaderEndPoint.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Slices, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.net.client.errors import PeerError, error_name
from wirebroker.net.client.failures import FailureLines, RetryPauses
from wirebroker.net.client.settings import Backoff
from wirebroker.replication.fetch_body import FetchSettings, Follower, fetch_body
from wirebroker.replication.fetch_session_handler import FetchSessionHandler, PartitionKey
from wirebroker.replication.followed_partition import FollowedPartition
from wirebroker.replication.leader_bounds import list_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.net.client.node import Node
    from wirebroker.replica.partition import Partition

logger = logging.getLogger(__name__)

_NO_BYTES: Final = memoryview(b"")
# Errors that newer metadata resolves; they are logged at DEBUG only.
_PASSING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


class ReplicaFetcher:
    """Fetches some of the partitions that one node leads."""

    __slots__ = (
        "_changed",
        "_delayed",
        "_followed",
        "_follower",
        "_lines",
        "_news",
        "_node",
        "_pauses",
        "_session",
        "_settings",
        "_task",
        "leader",
    )

    # _changed and _delayed are disjoint subsets of _followed.

    def __init__(self, leader: int, follower: Follower, settings: FetchSettings) -> None:
        self.leader = leader
        self._follower = follower
        self._settings = settings
        self._lines = FailureLines(logger, f"fetching from broker {leader} again")
        backoff = Backoff(settings.backoff_s / 20, most_s=settings.backoff_s, jitter=0.0)
        self._pauses = RetryPauses(backoff, seed=leader)
        self._followed: dict[PartitionKey, FollowedPartition] = {}
        # Those to be updated in the session, and those that wait for the end of a pause.
        self._changed: dict[PartitionKey, None] = {}
        self._delayed: dict[PartitionKey, None] = {}
        self._session = FetchSessionHandler()
        self._node: Node | None = None
        self._news: asyncio.Future[None] | None = None
        self._task = asyncio.create_task(self._run(), name=f"fetch from broker {leader}")

    def __len__(self) -> int:
        return len(self._followed)

    def add(self, partition: Partition) -> None:
        """Fetch a partition in its current role."""
        followed = FollowedPartition(partition)
        self._delayed.pop(followed.key, None)
        self._followed[followed.key] = followed
        self._changed[followed.key] = None
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def remove(self, key: PartitionKey) -> None:
        """Stop fetching a partition."""
        self._followed.pop(key, None)
        self._changed.pop(key, None)
        self._delayed.pop(key, None)
        self._session.forget(key)

    async def stop(self) -> None:
        """Stop fetching and close the connection."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._node is not None:
            self._node.abort()

    # -- the task ------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
            except PeerError as error:
                self._session.failed()
                await self._wait(type(error).__name__, str(error))
            except Exception:  # one bad response must not end replication
                logger.exception("cannot process a response of broker %d; retrying", self.leader)
                self._session.failed()
                await pause(self._settings.backoff_s)

    async def _turn(self) -> None:
        await self._collect()
        if not len(self._session):
            await self._wait_for_work()
            return
        node = self._reach()
        if node is None:
            await pause(self._settings.backoff_s)
            return
        request = self._session.next_request()
        answer = await node.request(
            ApiKey.FETCH,
            lambda version: fetch_body(request, version, self._follower, self._settings),
            timeout_s=self._settings.timeout_s,
        )
        self._session.answered(answer.error_code, answer.session_id)
        if answer.error_code:
            name = error_name(answer.error_code)
            await self._wait(name, name)
            return
        self._lines.end()
        self._pauses.end()
        await self._take(node, answer)

    async def _wait(self, kind: str, reason: str) -> None:
        self._lines.add(kind, f"cannot fetch from broker {self.leader}, retrying: {reason}")
        self._pauses.add()
        await pause(self._pauses.next_s)

    async def _wait_for_work(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        resume_at = min((self._followed[key].not_before for key in self._delayed), default=None)
        try:
            if resume_at is None:
                await self._news
            else:
                delay_s = max(0.0, resume_at - self._follower.clock.monotonic())
                await asyncio.wait([self._news], timeout=delay_s)
        finally:
            self._news = None

    def _reach(self) -> Node | None:
        address = self._follower.peers.address(self.leader)
        if self._node is not None and self._node.address != address:
            self._node.abort()
            self._node = None
            self._session.failed()
        if self._node is None:
            self._node = self._follower.peers.connect(self.leader)
        return self._node

    # -- requests --------------------------------------------------------------------------------

    async def _collect(self) -> None:
        now = self._follower.clock.monotonic()
        for key in [key for key in self._delayed if self._followed[key].not_before <= now]:
            del self._delayed[key]
            self._changed[key] = None
        slices = Slices(self._follower.clock)
        while self._changed:
            key = next(iter(self._changed))
            del self._changed[key]
            followed = self._followed[key]
            if self._must_wait(followed):
                # The quota may change in the meantime.
                followed.throttle(now=now, pause_s=self._settings.backoff_s)
                self._put_off(followed)
            else:
                self._session.want(key, followed.offsets())
            await slices.turn()

    # -- responses -------------------------------------------------------------------------------

    async def _take(self, node: Node, answer: Any) -> None:
        out_of_range: list[FollowedPartition] = []
        is_all_taken = True
        slices = Slices(self._follower.clock)
        for topic in answer.responses:
            for result in topic.partitions:
                followed = self._requested((topic.topic_id, result.partition_index))
                if followed is None:
                    is_all_taken = False
                    continue
                if result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    out_of_range.append(followed)
                else:
                    await self._take_one(followed, result)
                await slices.turn()
        if not is_all_taken:
            # The session would not repeat an ignored result, and an idle partition would not learn
            # the high watermark.
            self._session.failed()
        if out_of_range:
            await self._find_bounds(node, out_of_range)

    def _requested(self, key: PartitionKey) -> FollowedPartition | None:
        followed = self._followed.get(key)
        requested = self._session.asked(key)
        if followed is None or requested is None or requested.leader_epoch != followed.leader_epoch:
            return None
        return followed

    async def _take_one(self, followed: FollowedPartition, result: Any) -> None:
        partition = followed.partition
        try:
            if result.error_code:
                self._refused(followed, result.error_code)
            elif result.diverging_epoch.end_offset >= 0 or result.diverging_epoch.epoch >= 0:
                diverging = result.diverging_epoch
                await self._cut(
                    followed, followed.divergence(diverging.epoch, diverging.end_offset)
                )
                self._go_on(followed)
            elif partition.is_appending:
                self._delay(followed)  # a thread replays its producers
            else:
                partition.append_as_follower(
                    _NO_BYTES if result.records is None else result.records,
                    leader_epoch=followed.leader_epoch,
                    high_watermark=result.high_watermark,
                    log_start_offset=result.log_start_offset,
                    now_ms=self._follower.clock.now_ms(),
                )
                self._take_counted(followed, result)
        except KafkaError as error:
            self._failed(followed, error)
        except OSError as fault:
            self._follower.disk_failed(partition, fault)
            self._delay(followed)

    def _refused(self, followed: FollowedPartition, code: int) -> None:
        level = logging.DEBUG if code in _PASSING else logging.WARNING
        logger.log(
            level,
            "%s: cannot fetch from broker %d now: %s",
            followed.partition,
            self.leader,
            error_name(code),
        )
        self._delay(followed)

    def _failed(self, followed: FollowedPartition, error: KafkaError) -> None:
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            self._halt(followed)
            return
        level = logging.DEBUG if error.code in _PASSING else logging.ERROR
        logger.log(
            level,
            "%s: cannot append the records from broker %d: %s",
            followed.partition,
            self.leader,
            error.message or error,
        )
        self._delay(followed)

    async def _cut(self, followed: FollowedPartition, offset: int) -> None:
        partition = followed.partition
        logger.info(
            "%s: truncating to %d from %d: diverged from the leader",
            partition,
            offset,
            partition.log.log_end_offset,
        )
        await partition.truncate_in_turn(
            offset, leader_epoch=followed.leader_epoch, clock=self._follower.clock
        )

    # -- pauses ----------------------------------------------------------------------------------

    def _is_present(self, followed: FollowedPartition) -> bool:
        return self._followed.get(followed.key) is followed

    def _go_on(self, followed: FollowedPartition) -> None:
        followed.succeeded()
        if self._is_present(followed):
            self._changed[followed.key] = None

    def _take_counted(self, followed: FollowedPartition, result: Any) -> None:
        """Count throttled records against the quota (KIP-73)."""
        partition = followed.partition
        followed.is_behind = partition.log.log_end_offset < result.high_watermark
        self._go_on(followed)
        if result.records is not None and self._is_throttled(partition):
            self._follower.quota.count(len(result.records))

    def _is_throttled(self, partition: Partition) -> bool:
        throttled_replicas = partition.log.settings.follower_replication_throttled_replicas
        return self._follower.quota.concerns(throttled_replicas, partition.index)

    def _must_wait(self, followed: FollowedPartition) -> bool:
        return (
            followed.is_behind
            and self._is_throttled(followed.partition)
            and self._follower.quota.delay_s() > 0
        )

    def _delay(self, followed: FollowedPartition) -> None:
        clock = self._follower.clock
        followed.delay(now=clock.monotonic(), most_s=self._settings.backoff_s)
        self._put_off(followed)

    def _halt(self, followed: FollowedPartition) -> None:
        followed.halt()
        self._put_off(followed)

    def _put_off(self, followed: FollowedPartition) -> None:
        key = followed.key
        if self._is_present(followed):
            self._changed.pop(key, None)
            self._session.forget(key)
            if not followed.is_halted:
                self._delayed[key] = None

    # -- out of range ----------------------------------------------------------------------------

    async def _find_bounds(self, node: Node, lost: list[FollowedPartition]) -> None:
        """Bring logs that are out of range into the leader's bounds.

        Source: AbstractFetcherThread.fetchOffsetAndTruncate.
        """
        ends = await self._list_offsets(node, lost, LATEST)
        behind_leader: list[FollowedPartition] = []
        for followed in lost:
            end = ends.get(followed.key)
            if end is None:
                self._delay(followed)
            elif end < followed.partition.log.log_end_offset:
                await self._reset_to(followed, end, is_start=False)
            else:
                behind_leader.append(followed)
        if not behind_leader:
            return
        starts = await self._list_offsets(node, behind_leader, EARLIEST)
        for followed in behind_leader:
            start = starts.get(followed.key)
            if start is None:
                self._delay(followed)
            elif start > followed.partition.log.log_end_offset:
                await self._reset_to(followed, start, is_start=True)
            else:
                # The leader does not know this log's last epoch, or its bounds have just changed.
                self._refused(followed, ErrorCode.OFFSET_OUT_OF_RANGE)

    async def _reset_to(self, followed: FollowedPartition, offset: int, *, is_start: bool) -> None:
        partition, clock = followed.partition, self._follower.clock
        epoch = followed.leader_epoch
        try:
            if is_start:
                logger.warning(
                    "%s: restarting at %d, the leader's log start offset", partition, offset
                )
                await partition.restart_at(offset, leader_epoch=epoch, clock=clock)
            else:
                logger.warning(
                    "%s: truncating to %d, the leader's log end offset", partition, offset
                )
                await partition.truncate_in_turn(offset, leader_epoch=epoch, clock=clock)
            self._go_on(followed)
        except KafkaError as error:
            self._failed(followed, error)
        except OSError as fault:
            self._follower.disk_failed(partition, fault)
            self._delay(followed)

    async def _list_offsets(
        self, node: Node, followed_partitions: Iterable[FollowedPartition], timestamp: int
    ) -> dict[PartitionKey, int]:
        settings = self._settings
        return await list_offsets(
            node,
            followed_partitions,
            timestamp,
            node_id=self._follower.node_id,
            timeout_s=settings.timeout_s,
        )
