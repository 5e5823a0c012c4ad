"""A cluster for the console's pages without any broker: a collector with a given snapshot."""

from __future__ import annotations

import asyncio
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wirebroker.client.configs.configs import ConfigEntry
from wirebroker.console.model.group_info import CommittedOffsets, EndOffsets, GroupInfo, MemberInfo
from wirebroker.console.model.history import History
from wirebroker.console.model.partition_slots import SlotTable
from wirebroker.console.model.samples import SlotNumbers, Window
from wirebroker.console.model.settings import ClusterSettings
from wirebroker.console.model.snapshot import (
    BrokerInfo,
    ClusterSnapshot,
    ClusterStatus,
    LogDirInfo,
    QuorumInfo,
    QuorumNode,
)
from wirebroker.console.model.topic_info import (
    Figures,
    PartitionLayout,
    TopicInfo,
    TopicLayout,
    topic_info,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOW_MS = 1_795_000_000_000


class FakeCollector:
    """A collector whose snapshot a test replaces by `publish`."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.settings = ClusterSettings(snapshot.name, "127.0.0.1:9092", {})
        self.snapshot = snapshot
        self.client: Any = None
        self.kafka_user = "no login"
        self.touches = 0
        self.refreshes = 0
        self.readers = 0
        self._published = asyncio.Event()

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    def touch(self) -> None:
        self.touches += 1

    def refresh(self) -> None:
        self.refreshes += 1
        self.publish(self.snapshot._replace(number=self.snapshot.number + 1))

    async def newer_than(self, number: int) -> ClusterSnapshot:
        while self.snapshot.number <= number:
            await self._published.wait()
        return self.snapshot

    def publish(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot
        self._published.set()
        self._published = asyncio.Event()

    @contextmanager
    def subscribe(self) -> Iterator[FakeReader]:
        self.readers += 1
        try:
            yield FakeReader(self)
        finally:
            self.readers -= 1

    async def wait(self) -> None:
        await self._published.wait()


class FakeReader:
    def __init__(self, collector: FakeCollector) -> None:
        self._collector = collector
        self._number = collector.snapshot.number

    async def next(self) -> ClusterSnapshot:
        while self._collector.snapshot.number <= self._number:
            await self._collector.wait()
        self._number = self._collector.snapshot.number
        return self._collector.snapshot


def topic(
    name: str,
    *,
    partitions: int = 3,
    records: int = 100,
    isr: Sequence[int] = (1, 2),
    leader: int = 1,
    first_slot: int = 0,
    is_internal: bool = False,
    groups: tuple[str, ...] = (),
) -> TopicInfo:
    """Return a topic with the replicas 1 and 2, and so many records in each partition."""
    layout = PartitionLayout(leader, 4, (1, 2), tuple(isr), ())
    slots = first_slot + partitions

    def sample(taken_ms: int, number: int) -> SlotNumbers:
        return SlotNumbers(taken_ms, array("q", [number] * slots))

    def window(number: int) -> Window:
        before = sample(NOW_MS - 10_000, number // 2)
        return Window((before, sample(NOW_MS, number)), before)

    figures = Figures(
        ends=window(records),
        starts=sample(NOW_MS, 0),
        leader_sizes=window(records * 20),
        total_sizes=sample(NOW_MS, records * 40),
    )
    described = TopicLayout(
        name, bytes(15) + b"\1", is_internal, first_slot, (layout,) * partitions
    )
    return topic_info(described, figures, groups)


def group(
    name: str, *, topic_name: str = "orders", lag: int = 40, stuck: str | None = None, **others: Any
) -> GroupInfo:
    """Return a group with one member that reads partition 0 of a topic and is behind."""
    slots = SlotTable()
    slots.take(topic_name, bytes(15) + b"\1", 1)
    member = MemberInfo("member-1", None, "client-1", "/127.0.0.1", ((topic_name, 0),), None, None)
    progress = CommittedOffsets(
        NOW_MS, array("q", [0]), array("q", [100 - lag]), frozenset({topic_name})
    )
    found = GroupInfo(
        name=name,
        kind="classic",
        state="Stable",
        assignor="range",
        coordinator_id=1,
        members=(member,),
        member_count=1,
        partition_count=1,
        lag=lag,
        lag_s=2.5,
        is_lag_s_minimum=False,
        trend=3.0,
        stuck=stuck,
        next_step="restart it" if stuck else None,
        epoch=None,
        assignment_epoch=None,
        error=None,
        progress=progress,
        ends=EndOffsets(slots, (SlotNumbers(NOW_MS, array("q", [100])),), NOW_MS),
    )
    return found._replace(**others)


def broker(broker_id: int, **others: Any) -> BrokerInfo:
    log_dir = LogDirInfo("/data/kafka", None, 10, 1 << 30, 100 << 30, 30 << 30)
    found = BrokerInfo(
        broker_id, "box", 9092, "rack-1", False, broker_id == 1, 5, 10, 1 << 30, (log_dir,), "4.4"
    )
    return found._replace(**others)


def quorum() -> QuorumInfo:
    leader = QuorumNode(1, True, 900, 0, 0, "", ("CONTROLLER://box:9093",), NOW_MS, NOW_MS)
    follower = leader._replace(node_id=2, is_voter=False, end_offset=890, lag=10, lag_ms=1500)
    return QuorumInfo(1, 3, 890, (leader, follower), None)


def history() -> History:
    """Return the cluster's values of one minute."""
    kept = History()
    for step in range(12):
        values: dict[str, float | None] = {
            "records_per_s": 100.0 + step,
            "bytes_per_s": 2048.0 * step,
            "lag": 40.0 - step,
        }
        kept.add_cluster(NOW_MS - (12 - step) * 5000, values)
    return kept


def snapshot(
    name: str = "dev",
    *,
    topics: Sequence[TopicInfo] = (),
    groups: Sequence[GroupInfo] = (),
    **others: Any,
) -> ClusterSnapshot:
    """Return a healthy cluster of two brokers."""
    found = ClusterSnapshot(
        name,
        number=1,
        taken_ms=NOW_MS,
        status=ClusterStatus.OK,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        controller_id=1,
        brokers={1: broker(1), 2: broker(2)},
        quorum=quorum(),
        topics={each.name: each for each in topics},
        groups={each.name: each for each in groups},
        records_per_s=1234.5,
        bytes_per_s=2 << 20,
        lag=sum(each.lag or 0 for each in groups),
        partition_count=sum(each.partition_count for each in topics),
        leaderless_count=sum(each.leaderless_count for each in topics),
        under_replicated_count=sum(each.under_replicated_count for each in topics),
        size_bytes=5 << 30,
        history=history(),
    )
    return found._replace(**others)


def config(name: str, value: str | None, **others: Any) -> ConfigEntry:
    """Return a config with its default."""
    found = ConfigEntry(
        name=name,
        value=value,
        source="default",
        is_set=False,
        is_read_only=False,
        is_sensitive=False,
        synonyms=(),
        type="string",
        documentation=None,
    )
    return found._replace(**others)
