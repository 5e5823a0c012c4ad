"""Builds a snapshot from the state, in slices of time."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from wirebroker.base.text import few_of
from wirebroker.console.model.group_info import (
    EndOffsets,
    GroupInfo,
    LagOfGroup,
    group_lag,
)
from wirebroker.console.model.history import BYTES_PER_S, LAG, RECORDS_PER_S, SIZE_BYTES
from wirebroker.console.model.problems import problems_of
from wirebroker.console.model.samples import UNKNOWN, SlotNumbers
from wirebroker.console.model.snapshot import BrokerInfo, ClusterSnapshot, ClusterStatus
from wirebroker.console.model.stuck_groups import stuck_of
from wirebroker.console.model.topic_info import Figures, topic_info

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.console.model.cluster_state import ClusterState, WatchedGroup
    from wirebroker.console.model.polled_cluster import PolledCluster
    from wirebroker.console.model.topic_info import TopicInfo

# Rates are taken over at least this time.
_RATE_MS: Final = 10_000
_SIZE_RATE_MS: Final = 30_000
_TREND_MS: Final = 60_000
_LAG_EVERY_MS: Final = 5000
# Slots of deleted groups before the slots are given again.
_SPARE_GROUPS: Final = 1000


async def build_snapshot(cluster: PolledCluster, name: str, number: int) -> ClusterSnapshot:
    """Return the state as a snapshot, and add its totals to the history."""
    state = cluster.state
    groups = await _groups(cluster)
    topics = await _topics(cluster)
    brokers = _brokers(state)
    rates = [topic.records_per_s for topic in topics.values()]
    byte_rates = [topic.bytes_per_s for topic in topics.values()]
    lag = _sum_of_known(group.lag for group in groups.values())
    sizes = [directory.size_bytes for row in state.log_dirs.values() for directory in row]
    snapshot = ClusterSnapshot(
        name=name,
        number=number,
        taken_ms=state.taken_ms,
        status=_status(state),
        failure=state.failure,
        cluster_id=state.cluster_id,
        controller_id=state.controller_id,
        brokers=MappingProxyType(brokers),
        quorum=state.quorum,
        topics=MappingProxyType(topics),
        groups=MappingProxyType(groups),
        records_per_s=_sum_of_known(rates),
        bytes_per_s=_sum_of_known(byte_rates),
        lag=None if lag is None else int(lag),
        partition_count=sum(topic.partition_count for topic in topics.values()),
        leaderless_count=sum(topic.leaderless_count for topic in topics.values()),
        under_replicated_count=sum(topic.under_replicated_count for topic in topics.values()),
        size_bytes=sum(sizes) if sizes else None,
        hidden=_hidden(state),
        clients=MappingProxyType(dict(sorted(state.clients.items()))),
        history=state.history,
    )
    _note_totals(state, snapshot)
    return snapshot._replace(problems=tuple(problems_of(snapshot, state, cluster.clock.now_ms())))


def _status(state: ClusterState) -> ClusterStatus:
    if state.failure is not None:
        return ClusterStatus.FAILED
    return ClusterStatus.OK if state.taken_ms else ClusterStatus.CONNECTING


def _sum_of_known(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _hidden(state: ClusterState) -> str | None:
    if state.is_whole is False:
        return (
            "this console's user may not describe the cluster: topics, groups and transactions"
            " that it may not describe are missing here"
        )
    if state.hidden_topics:
        names = few_of(state.hidden_topics, 3)
        return f"this console's user may not see all topics: {names} cannot be described"
    return None


def _note_totals(state: ClusterState, snapshot: ClusterSnapshot) -> None:
    if not snapshot.taken_ms:
        return
    state.history.add_cluster(
        snapshot.taken_ms,
        {
            RECORDS_PER_S: snapshot.records_per_s,
            BYTES_PER_S: snapshot.bytes_per_s,
            LAG: snapshot.lag,
            SIZE_BYTES: snapshot.size_bytes,
        },
    )


# --- brokers ---


def _brokers(state: ClusterState) -> dict[int, BrokerInfo]:
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for layout in state.layouts.values():
        for partition in layout.partitions:
            leaders[partition.leader] += 1
            replicas.update(partition.replicas)
    return {
        broker_id: BrokerInfo(
            broker_id,
            row.host,
            row.port,
            row.rack,
            row.is_fenced,
            broker_id == state.controller_id,
            leaders[broker_id],
            replicas[broker_id],
            (
                sum(directory.size_bytes for directory in state.log_dirs[broker_id])
                if broker_id in state.log_dirs
                else None
            ),
            state.log_dirs.get(broker_id, ()),
            state.versions.get(broker_id),
        )
        for broker_id, row in sorted(state.brokers.items())
    }


# --- topics ---


async def _topics(cluster: PolledCluster) -> dict[str, TopicInfo]:
    state = cluster.state
    history = state.history
    figures = Figures(
        history.ends.window(_RATE_MS),
        state.starts,
        history.leader_sizes.window(_SIZE_RATE_MS),
        history.total_sizes.latest,
    )
    readers: dict[str, list[str]] = defaultdict(list)
    slices = cluster.slices()
    for name in sorted(state.groups):
        progress = state.groups[name].progress
        for topic in () if progress is None else progress.topics:
            readers[topic].append(name)
        await slices.turn()
    topics: dict[str, TopicInfo] = {}
    for name, layout in state.layouts.items():
        topics[name] = topic_info(layout, figures, tuple(readers.get(name, ())))
        await slices.turn()
    return topics


# --- groups ---


async def _groups(cluster: PolledCluster) -> dict[str, GroupInfo]:
    state = cluster.state
    now_ms = cluster.clock.now_ms()
    ends = EndOffsets(state.history.slots, tuple(state.history.ends), now_ms)
    slices = cluster.slices()
    lags = array("q", [UNKNOWN]) * _group_slot_count(state)
    group_slots = state.history.group_slots
    groups: dict[str, GroupInfo] = {}
    trend_from = state.history.lags.before(_TREND_MS)
    for name in sorted(state.groups):
        group = state.groups[name]
        slot = group_slots[name]
        before = None if trend_from is None else trend_from.number(slot)
        info = group_info(group, ends)
        if info.lag is not None:
            lags[slot] = info.lag
            if before is not None and trend_from is not None and now_ms > trend_from.taken_ms:
                rate = (info.lag - before) * 1000 / (now_ms - trend_from.taken_ms)
                info = info._replace(trend=rate)
        groups[name] = info
        await slices.turn()
    newest = state.history.lags.latest
    is_due = newest is None or now_ms - newest.taken_ms >= _LAG_EVERY_MS
    if is_due and state.history.ends.latest is not None:
        state.history.lags.add(SlotNumbers(now_ms, lags))
    return groups


def _group_slot_count(state: ClusterState) -> int:
    slots = state.history.group_slots
    if len(slots) > _SPARE_GROUPS + 2 * len(state.groups):
        slots.clear()
        state.history.lags.clear()
    for name in state.groups:
        slots.setdefault(name, len(slots))
    return len(slots)


def group_info(group: WatchedGroup, ends: EndOffsets) -> GroupInfo:
    """Return a group with its totals; its trend is None."""
    described = group.described
    lag = (
        LagOfGroup(None, None, is_lag_s_minimum=False)
        if group.progress is None
        else group_lag(group.progress, ends)
    )
    stuck = stuck_of(group, lag.lag, ends.now_ms)
    return GroupInfo(
        name=group.name,
        kind=group.kind,
        state=group.state,
        assignor="" if described is None else described.assignor,
        coordinator_id=None if group.coordinator_id < 0 else group.coordinator_id,
        members=group.members,
        member_count=group.member_count,
        partition_count=None if group.progress is None else group.offset_count,
        lag=lag.lag,
        lag_s=lag.lag_s,
        is_lag_s_minimum=lag.is_lag_s_minimum,
        trend=None,
        stuck=None if stuck is None else stuck.why,
        next_step=None if stuck is None else stuck.next_step,
        epoch=None if described is None else described.epoch,
        assignment_epoch=None if described is None else described.assignment_epoch,
        error=group.error,
        progress=group.progress,
        ends=ends,
    )
