"""The collector of a cluster: one for all viewers.

One task runs the polls in turn, the most overdue first, and publishes a snapshot after each;
another reads the brokers' metrics pages. The pauses between polls keep the cost for the brokers
within the budget (`request_budget`), so with many partitions or slow brokers the values are older.
Without viewers the polls are rarer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.client.errors import ClientError, UnservedError
from wirebroker.client.records.record_connections import RecordConnections
from wirebroker.console.model.client_polls import poll_clients
from wirebroker.console.model.cluster_polls import (
    poll_metadata,
    poll_min_isr,
    poll_quorum,
    poll_versions,
)
from wirebroker.console.model.detail_cache import DetailCache
from wirebroker.console.model.group_polls import poll_commits, poll_groups, poll_members
from wirebroker.console.model.http_settings import http_settings
from wirebroker.console.model.kafka_login import kafka_login
from wirebroker.console.model.partition_polls import poll_ends, poll_sizes, poll_starts
from wirebroker.console.model.polled_cluster import PolledCluster
from wirebroker.console.model.request_budget import SHARE, RequestBudget
from wirebroker.console.model.settings import open_client
from wirebroker.console.model.snapshot import ClusterSnapshot, ClusterStatus, Failure
from wirebroker.console.model.snapshot_builder import build_snapshot
from wirebroker.console.model.transaction_polls import poll_transactions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from wirebroker.base.clock import Clock
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.console.model.settings import ClusterSettings

logger = logging.getLogger("wirebroker")

# Without a viewer for this time, polls are rarer by this factor.
_IDLE_S: Final = 60.0
_IDLE_FACTOR: Final = 6.0
# After a failure the cluster is tried again, at growing intervals.
_FIRST_RETRY_S: Final = 2.0
_MOST_RETRY_S: Final = 30.0
# Runs of a poll of which the cheapest counts.
_COSTS: Final = 5
# Building snapshots takes at most this share of the time.
_BUILD_SHARE: Final = 0.2


class Poll(NamedTuple):
    """A kind of request, with the shortest interval; its name completes `… cannot be read`."""

    name: str
    interval_s: float
    run: Callable[[PolledCluster], Awaitable[None]]


_METADATA: Final = Poll("topics and brokers", 5.0, poll_metadata)
_ENDS: Final = Poll("end offsets", 5.0, poll_ends)
_GROUPS: Final = Poll("groups", 5.0, poll_groups)
POLLS: Final = (
    _METADATA,
    _ENDS,
    _GROUPS,
    Poll("committed offsets", 5.0, poll_commits),
    Poll("quorum", 5.0, poll_quorum),
    Poll("min.insync.replicas", 10.0, poll_min_isr),
    Poll("log directories", 15.0, poll_sizes),
    Poll("start offsets", 30.0, poll_starts),
    Poll("members of groups", 10.0, poll_members),
    Poll("transactions", 15.0, poll_transactions),
    Poll("versions of brokers", 60.0, poll_versions),
)
# Runs in its own task: slow metrics pages do not delay the other polls.
_CLIENTS: Final = Poll("metrics of brokers", 5.0, poll_clients)


class SnapshotReader:
    """A reader of snapshots; slow readers skip some."""

    __slots__ = ("_collector", "_number")

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._number = -1

    async def next(self) -> ClusterSnapshot:
        """Wait for a snapshot that is newer than the one returned before, and return the newest.

        Raises:
            ClientError: The collector has stopped.
        """
        snapshot = await self._collector.newer_than(self._number)
        self._number = snapshot.number
        return snapshot


class Collector:
    """A collector; `start` and `stop` it once each.

    Attributes:
        settings: Of the cluster.
        snapshot: The newest one.
        details: What pages read themselves.
        turn: Lock for reading a large batch, which all clusters share (`RecordConnections`).
        kafka_user: The user of its login, for pages and the audit log.
    """

    __slots__ = (
        "_budget",
        "_build_s",
        "_built_at",
        "_clock",
        "_cluster",
        "_costs_s",
        "_failures",
        "_is_stale",
        "_is_stopped",
        "_pace",
        "_published",
        "_ran_at",
        "_reader_count",
        "_record_connections",
        "_retry_at",
        "_scraping",
        "_task",
        "_touched",
        "_touched_at",
        "details",
        "kafka_user",
        "settings",
        "snapshot",
        "turn",
    )

    def __init__(
        self,
        settings: ClusterSettings,
        clock: Clock,
        *,
        pace: float = 1.0,
        turn: asyncio.Lock | None = None,
    ) -> None:
        """Store the cluster; a `pace` below 1 shortens all intervals and pauses, for tests."""
        self._pace = pace
        self.turn = turn or asyncio.Lock()
        self.settings = settings
        self.kafka_user = kafka_login(settings)
        self.snapshot = ClusterSnapshot(settings.name)
        self.details = DetailCache(clock)
        self._clock = clock
        self._budget = RequestBudget(clock, min(1.0, SHARE / pace))
        self._cluster: PolledCluster | None = None
        self._record_connections: RecordConnections | None = None
        self._task: asyncio.Task[None] | None = None
        self._scraping: asyncio.Task[None] | None = None
        # When each poll began last (monotonic); a missing one has not run yet.
        self._ran_at: dict[Poll, float] = {}
        # What the last runs of each poll cost the busiest broker.
        self._costs_s: dict[Poll, deque[float]] = {}
        self._failures = 0
        self._retry_at = 0.0
        self._is_stale = False
        self._built_at = self._build_s = 0.0
        self._reader_count = 0
        self._touched_at = clock.monotonic()
        self._touched = asyncio.Event()
        self._published = asyncio.Event()
        self._is_stopped = False

    async def start(self) -> None:
        """Begin to read the cluster; settings that cannot be used become its failure."""
        try:
            client = open_client(self.settings, self._clock)
        except ClientError as error:
            step = "correct the cluster's settings, and start the console again"
            failure = Failure(str(error), step, self._clock.now_ms())
            self.snapshot = self.snapshot._replace(
                number=1, status=ClusterStatus.FAILED, failure=failure
            )
            return
        http = http_settings(self.settings.properties)
        self._cluster = PolledCluster(client, self._clock, http)
        self._task = asyncio.create_task(self._run(), name=f"collector {self.settings.name}")
        if http.metrics_urls:
            name = f"metrics of {self.settings.name}"
            self._scraping = asyncio.create_task(self._scrape(), name=name)

    async def stop(self) -> None:
        """Stop reading, and close the connections."""
        self._is_stopped = True
        self._wake_readers()
        tasks = [task for task in (self._task, self._scraping) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.details.close()
        if self._cluster is not None:
            self._cluster.client.abort()
        if self._record_connections is not None:
            self._record_connections.pages.abort()

    @property
    def record_connections(self) -> RecordConnections:
        """The connections for records; raises as `client`."""
        if self._record_connections is None:
            self._record_connections = RecordConnections(self.client, self.turn)
        return self._record_connections

    @property
    def client(self) -> KafkaClient:
        """The client, for details that pages read.

        Raises:
            ClientError: The cluster's settings cannot be used.
        """
        return self.cluster.client

    @property
    def cluster(self) -> PolledCluster:
        """The cluster with its state; raises as `client`."""
        if self._cluster is None:
            failure = self.snapshot.failure
            raise ClientError("the cluster is not read yet" if failure is None else failure.what)
        return self._cluster

    # --- viewers ---

    def touch(self) -> None:
        """Note that a page was requested."""
        if self._is_idle:
            self._touched.set()
        self._touched_at = self._clock.monotonic()

    def refresh(self) -> None:
        """Read what a change may have changed as soon as possible."""
        self.details.forget()
        for poll in (_METADATA, _ENDS, _GROUPS):
            if poll in self._ran_at:
                self._ran_at[poll] = -poll.interval_s * _IDLE_FACTOR
        self._touched.set()

    @contextlib.contextmanager
    def subscribe(self) -> Generator[SnapshotReader]:
        """Count a viewer while the context lasts, and give it a reader."""
        self.touch()
        self._reader_count += 1
        try:
            yield SnapshotReader(self)
        finally:
            self._reader_count -= 1
            self._touched_at = self._clock.monotonic()

    async def newer_than(self, number: int) -> ClusterSnapshot:
        """Return the newest snapshot when its number is higher; see SnapshotReader."""
        while self.snapshot.number <= number:
            if self._is_stopped:
                raise ClientError(f"the console of {self.settings.name} has stopped")
            await self._published.wait()
        return self.snapshot

    @property
    def _is_idle(self) -> bool:
        return not self._reader_count and self._clock.monotonic() - self._touched_at > _IDLE_S

    # --- polls ---

    async def _run(self) -> None:
        while True:
            now = self._clock.monotonic()
            poll_at, publish_at = self._poll_at(now), self._publish_at()
            if publish_at is not None and publish_at <= max(now, poll_at):
                await self._wait(publish_at - now)
                await self._publish()
            elif poll_at > now:
                await self._wait(poll_at - now)
            else:
                await self._run_poll(self._most_overdue(now))

    async def _scrape(self) -> None:
        """Read metrics pages that are due, forever."""
        ran_at = -math.inf
        while True:
            if self._clock.monotonic() - ran_at >= self._interval_s(_CLIENTS):
                ran_at = self._clock.monotonic()
                try:
                    await _CLIENTS.run(self.cluster)
                except Exception:  # the next round tries again
                    logger.exception("cluster %s: %s", self.settings.name, _CLIENTS.name)
                if self.snapshot.number:  # the first snapshot waits for the metadata
                    self._is_stale = True
                    self._touched.set()
            await pause(self._pace * _CLIENTS.interval_s)

    async def _wait(self, seconds: float) -> None:
        if seconds <= 0:
            return
        self._touched.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._touched.wait()

    def _poll_at(self, now: float) -> float:
        """Return when the next poll may begin."""
        if self._failures:
            return self._retry_at
        if len(self._ran_at) < len(POLLS):
            return now
        next_due = min(self._ran_at[poll] + self._interval_s(poll) for poll in POLLS)
        return max(next_due, now + self._budget.pause_s)

    def _interval_s(self, poll: Poll) -> float:
        return self._pace * poll.interval_s * (_IDLE_FACTOR if self._is_idle else 1.0)

    def _most_overdue(self, now: float) -> Poll:
        if self._failures:
            return _METADATA
        for poll in POLLS:
            if poll not in self._ran_at:
                return poll
        return max(POLLS, key=lambda poll: (now - self._ran_at[poll]) / poll.interval_s)

    async def _run_poll(self, poll: Poll) -> None:
        cluster = self.cluster
        is_first = poll not in self._ran_at
        self._ran_at[poll] = self._clock.monotonic()
        refusals = cluster.state.refusals
        try:
            await poll.run(cluster)
            refusals.pop(poll.name, None)
            if poll is _METADATA:
                self._succeed()
        except UnservedError:
            refusals.pop(poll.name, None)  # an older broker; the pages omit these values
        except ClientError as error:
            self._note_error(poll, error)
        except Exception:  # the other polls continue
            logger.exception("cluster %s: %s cannot be read", self.settings.name, poll.name)
            self._fail(f"the console failed to read {poll.name}", "read the console's log")
        costs_s = self._costs_s.setdefault(poll, deque(maxlen=_COSTS))
        costs_s.append(cluster.take_spent())
        if not is_first:
            # A response may be late because others keep the broker busy; the fastest was not.
            self._budget.spend(min(costs_s))
        self._is_stale = True

    def _note_error(self, poll: Poll, error: ClientError) -> None:
        if poll is _METADATA:
            self._fail(str(error), next_step_of(error, self.settings.name))
        elif error.code:
            self.cluster.state.refusals[poll.name] = str(error)
        else:  # no response: reading the metadata shows whether the cluster responds at all
            self._ran_at[_METADATA] = 0.0

    def _succeed(self) -> None:
        self._failures = 0
        self.cluster.state.failure = None

    def _fail(self, what: str, next_step: str) -> None:
        state = self.cluster.state
        now_ms = self._clock.now_ms()
        since_ms = now_ms if state.failure is None else state.failure.since_ms
        state.failure = Failure(what, next_step, since_ms)
        pause_s = self._pace * min(_MOST_RETRY_S, _FIRST_RETRY_S * (1 << min(self._failures, 10)))
        self._failures += 1
        self._retry_at = self._clock.monotonic() + pause_s

    # --- snapshots ---

    def _publish_at(self) -> float | None:
        """Return when the next snapshot may be built; None if it would be the same."""
        if not self._is_stale:
            return None
        if self.snapshot.status is not ClusterStatus.OK or self._failures:
            return 0.0
        return self._built_at + self._build_s / _BUILD_SHARE

    async def _publish(self) -> None:
        self._is_stale = False
        began = self._clock.monotonic()
        snapshot = await build_snapshot(self.cluster, self.settings.name, self.snapshot.number + 1)
        self.snapshot = snapshot._replace(is_complete=len(self._ran_at) == len(POLLS))
        self._built_at = self._clock.monotonic()
        self._build_s = self._built_at - began
        self._wake_readers()

    def _wake_readers(self) -> None:
        published, self._published = self._published, asyncio.Event()
        published.set()


def next_step_of(error: ClientError, name: str) -> str:
    """Return what to do about a cluster that cannot be read."""
    message = str(error)
    if "cannot log in" in message:
        return f"check sasl.mechanism and sasl.jaas.config of cluster {name}"
    if error.code:
        return "allow this console's user to describe the cluster"
    return f"check that its brokers run, and bootstrap.servers of cluster {name}"
