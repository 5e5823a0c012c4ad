"""Metrics of the groups that this broker coordinates.

As in kafka_exporter, all partitions of a topic are listed once a group has committed an offset for
one of them.

Source: kafka_exporter's collect.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wirebroker.coordinator.groups.group import GroupType
from wirebroker.metrics.rows import ShownRow

NOTHING_COMMITTED: Final = -1


class GroupPartition(NamedTuple):
    """A partition that a group reads."""

    group_id: str
    topic: str
    partition: int


class GroupLag(NamedTuple):
    """A group's progress in a partition.

    Attributes:
        offset: The committed offset, or NOTHING_COMMITTED.
        lag: Unread committed records; NOTHING_COMMITTED without a committed offset; None without a
            log.
        lag_ms: Age of the first unread record; 0 if there is none; None if unknown.
    """

    offset: int
    lag: int | None
    lag_ms: int | None


class GroupTopic(NamedTuple):
    """Sums over a topic's partitions, as in kafka_exporter."""

    offset_sum: int
    lag_sum: int


class KindLag(NamedTuple):
    """The lag of all groups of a kind.

    Attributes:
        records: Sum over all partitions.
        largest_ms: Largest age of a first unread record.
    """

    records: int
    largest_ms: int


_JMX: Final = "kafka_server_group_coordinator_metrics_"

KIND_ROWS: Final[tuple[ShownRow[int], ...]] = (
    ShownRow("Groups of a kind.", lambda count: count, jmx=f"{_JMX}group_count"),
)

# By kind, with the label `state`.
STATE_ROWS: Final[dict[GroupType, tuple[ShownRow[int], ...]]] = {
    kind: (
        ShownRow(f"{kind.capitalize()} groups in a state.", int, jmx=f"{_JMX}{kind}_group_count"),
    )
    for kind in GroupType
}

KIND_LAG_ROWS: Final[tuple[ShownRow[KindLag], ...]] = (
    ShownRow(
        "Records that the groups of a kind have not read yet.",
        lambda each: each.records,
        own="wirebroker_group_lag_records",
    ),
    ShownRow(
        "Age of the first record that a group of a kind has not read yet; the largest one.",
        lambda each: each.largest_ms / 1000,
        own="wirebroker_group_lag_seconds",
    ),
)

GROUP_ROWS: Final[tuple[ShownRow[int], ...]] = (
    ShownRow(
        "Members of the group.",
        lambda count: count,
        exporter="kafka_consumergroup_members",
        kminion="kminion_kafka_consumer_group_members",
    ),
)

GROUP_TOPIC_ROWS: Final[tuple[ShownRow[GroupTopic], ...]] = (
    ShownRow(
        "Sum of the group's offsets in a topic.",
        lambda each: each.offset_sum,
        exporter="kafka_consumergroup_current_offset_sum",
        kminion="kminion_kafka_consumer_group_topic_offset_sum",
    ),
    ShownRow(
        "Records of a topic that the group has not read yet.",
        lambda each: each.lag_sum,
        exporter="kafka_consumergroup_lag_sum",
        kminion="kminion_kafka_consumer_group_topic_lag",
    ),
)

GROUP_PARTITION_ROWS: Final[tuple[ShownRow[GroupLag], ...]] = (
    ShownRow(
        "Offset that the group has committed; -1: none.",
        lambda each: each.offset,
        exporter="kafka_consumergroup_current_offset",
    ),
    ShownRow(
        "Records of a partition that the group has not read yet; -1: it has committed nothing.",
        lambda each: each.lag,
        exporter="kafka_consumergroup_lag",
        kminion="kminion_kafka_consumer_group_topic_partition_lag",
    ),
    ShownRow(
        "Age of the first record that the group has not read yet; 0 if it has read all.",
        lambda each: None if each.lag_ms is None else each.lag_ms / 1000,
        own="wirebroker_consumergroup_lag_seconds",
    ),
)

SHARE_PARTITION_ROWS: Final[tuple[ShownRow[GroupLag], ...]] = (
    ShownRow(
        "Offset below which a share group has finished all records; -1: it has not begun.",
        lambda each: each.offset,
        own="wirebroker_sharegroup_start_offset",
    ),
    ShownRow(
        "Records of a partition that a share group has not finished yet; -1: unknown.",
        lambda each: each.lag,
        own="wirebroker_sharegroup_lag",
    ),
    ShownRow(
        "Age of the first record that a share group has not finished yet; 0 without any.",
        lambda each: None if each.lag_ms is None else each.lag_ms / 1000,
        own="wirebroker_sharegroup_lag_seconds",
    ),
)
