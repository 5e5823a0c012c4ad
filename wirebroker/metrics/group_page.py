"""The groups that this broker coordinates, and their lags, on the page of metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from wirebroker.coordinator.groups.classic.classic_group import ClassicGroup
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.metrics.group_rows import (
    GROUP_PARTITION_ROWS,
    GROUP_ROWS,
    GROUP_TOPIC_ROWS,
    KIND_LAG_ROWS,
    KIND_ROWS,
    SHARE_PARTITION_ROWS,
    STATE_ROWS,
    GroupTopic,
    KindLag,
)
from wirebroker.metrics.page import label_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Slices
    from wirebroker.metrics.broker_rows import BrokerCounts
    from wirebroker.metrics.group_lag import Lags
    from wirebroker.metrics.group_rows import GroupLag, GroupPartition
    from wirebroker.metrics.page import LabelTexts, Page


async def add_groups(
    page: Page, counts: BrokerCounts, broker: Broker, slices: Slices
) -> dict[str, GroupType]:
    """Add the groups by kind and state, and their members; return each group's kind."""
    members: list[tuple[LabelTexts, int]] = []
    kinds: dict[str, GroupType] = {}
    states: Counter[tuple[GroupType, str]] = Counter()
    for shard in list(broker.groups.shards()):
        counts.group_offsets += shard.offsets.count
        for group in list(shard.groups.values()):
            kinds[group.group_id] = group.group_type
            states[group.group_type, group.state_name] += 1
            labels = label_texts((("consumergroup", group.group_id),))
            members.append((labels, len(group.members)))
            if isinstance(group, ClassicGroup):
                counts.classic_groups[group.state_name] += 1
                counts.waiting["Rebalance"] += group.roster.awaiting_join_count
            await slices.turn()
    await slices.run(page.add(GROUP_ROWS, members))
    for kind, rows in STATE_ROWS.items():
        in_states = [
            (label_texts((("state", state),)), count)
            for (group_kind, state), count in sorted(states.items())
            if group_kind is kind
        ]
        await slices.run(page.add(rows, in_states))
        total = sum(count for _, count in in_states)
        await slices.run(page.add(KIND_ROWS, [(label_texts((("protocol", kind),)), total)]))
    return kinds


async def add_lags(
    page: Page,
    lags: Lags,
    kinds: Mapping[str, GroupType],
    slices: Slices,
) -> None:
    """Add the lags by partition, topic and kind; offsets without a group are of a classic one."""
    topics: dict[tuple[str, str], GroupTopic] = {}
    by_kind: dict[GroupType, KindLag] = {}
    rows: list[tuple[LabelTexts, GroupLag]] = []
    for (group_id, topic, index), progress in lags.committed.items():
        lag = max(0, progress.lag or 0)
        before = topics.get((group_id, topic), GroupTopic(0, 0))
        topics[group_id, topic] = GroupTopic(
            before.offset_sum + progress.offset, before.lag_sum + lag
        )
        _count(by_kind, kinds.get(group_id, GroupType.CLASSIC), progress)
        place = ("consumergroup", group_id), ("partition", str(index)), ("topic", topic)
        rows.append((label_texts(place), progress))
        await slices.turn()
    await slices.run(page.add(GROUP_PARTITION_ROWS, rows))
    by_topic: list[tuple[LabelTexts, GroupTopic]] = []
    for (group_id, topic), group_topic in topics.items():
        labels = label_texts((("consumergroup", group_id), ("topic", topic)))
        by_topic.append((labels, group_topic))
        await slices.turn()
    await slices.run(page.add(GROUP_TOPIC_ROWS, by_topic))
    await _add_shares(page, lags.shares, by_kind, slices)
    of_kinds = [(label_texts((("kind", kind),)), lag) for kind, lag in sorted(by_kind.items())]
    await slices.run(page.add(KIND_LAG_ROWS, of_kinds))


def _count(by_kind: dict[GroupType, KindLag], kind: GroupType, progress: GroupLag) -> None:
    records, largest_ms = by_kind.get(kind, KindLag(0, 0))
    lag = max(0, progress.lag or 0)
    by_kind[kind] = KindLag(records + lag, max(largest_ms, progress.lag_ms or 0))


async def _add_shares(
    page: Page,
    lags: Mapping[GroupPartition, GroupLag],
    by_kind: dict[GroupType, KindLag],
    slices: Slices,
) -> None:
    """Add the lags of share groups by partition, and count them."""
    rows: list[tuple[LabelTexts, GroupLag]] = []
    for (group_id, topic, index), progress in lags.items():
        _count(by_kind, GroupType.SHARE, progress)
        place = ("group", group_id), ("partition", str(index)), ("topic", topic)
        rows.append((label_texts(place), progress))
        await slices.turn()
    await slices.run(page.add(SHARE_PARTITION_ROWS, rows))
