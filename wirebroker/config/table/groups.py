"""Configs of classic groups, of offsets and their topic, and of the share coordinator."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import INT_MAX, integer, kept, long, short

ROWS: Final = (
    integer(
        "offsets.topic.num.partitions",
        50,
        "Partitions of __consumer_offsets when it is created.",
        1,
    ),
    short(
        "offsets.topic.replication.factor",
        3,
        "Replicas of __consumer_offsets when it is created.",
        1,
        profile="1",
    ),
    integer(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Segment size of __consumer_offsets when it is created.",
        1,
    ),
    integer(
        "share.coordinator.state.topic.num.partitions",
        50,
        "Partitions of __share_group_state when it is created.",
        1,
    ),
    short(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Replicas of __share_group_state when it is created.",
        1,
        profile="1",
    ),
    short(
        "share.coordinator.state.topic.min.isr",
        2,
        "min.insync.replicas of __share_group_state when it is created.",
        1,
        profile="1",
    ),
    integer(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        "Segment size of __share_group_state when it is created.",
        1,
    ),
    integer(
        "share.coordinator.state.topic.compression.codec",
        0,
        "Compression of the records in __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 "
        "zstd.",
        0,
        at_most=4,
    ),
    integer(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "Updates of a share partition's state between two snapshots of it.",
        0,
        at_most=500,
    ),
    integer(
        "share.coordinator.write.timeout.ms",
        5000,
        "How long a change of a share partition's state may take to be committed to the log.",
        1,
    ),
    integer(
        "share.coordinator.state.topic.prune.interval.ms",
        300_000,
        "Interval at which redundant records of __share_group_state are deleted.",
        1,
        internal=True,
    ),
    integer(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300_000,
        "Interval at which states that no longer change are written again, so that older records "
        "can be deleted.",
        1,
        internal=True,
    ),
    integer(
        "group.min.session.timeout.ms",
        6000,
        "Shortest session timeout that a member may request.",
    ),
    integer(
        "group.max.session.timeout.ms",
        1_800_000,
        "Longest session timeout that a member may request.",
    ),
    integer(
        "group.max.size",
        INT_MAX,
        "Maximum number of members of a group.",
        1,
    ),
    integer(
        "offset.metadata.max.bytes",
        4096,
        "Maximum size of the metadata text that a commit stores with an offset.",
    ),
    integer(
        "offsets.retention.minutes",
        10_080,
        "How long committed offsets of a group without members are kept.",
        1,
    ),
    long(
        "offsets.retention.check.interval.ms",
        600_000,
        "Interval at which expired offsets are removed.",
        1,
    ),
    integer(
        "offsets.commit.timeout.ms",
        5000,
        "How long a commit may take to be committed to the log.",
        1,
    ),
    integer(
        "offsets.topic.compression.codec",
        0,
        "Compression of the records in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 "
        "zstd.",
        0,
        at_most=4,
    ),
    integer(
        "group.initial.rebalance.delay.ms",
        3000,
        "How long a new group waits for more members before its first rebalance.",
        profile="0",
    ),
    *kept(
        "coordinators cache no buffers.",
        """
        group.coordinator.cached.buffer.max.bytes int 1048588 524288.. cluster-wide
        share.coordinator.cached.buffer.max.bytes int 1048588 524288.. cluster-wide
        """,
    ),
    *kept(
        "share groups are served by this broker's own code, on the event loop.",
        """
        group.share.dlq.manager.class.name string org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager - read-only internal
        group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister - read-only internal
        share.fetch.purgatory.purge.interval.requests int 1000 - read-only
        """,  # noqa: E501 - names of classes
    ),
    *kept(
        "coordinators run on the event loop, without threads.",
        """
        group.coordinator.append.linger.ms int -1 - read-only
        group.coordinator.background.threads int 2 1.. read-only
        group.coordinator.threads int 4 1.. read-only
        group.consumer.assignor.offload.enable boolean true - cluster-wide internal
        group.share.assignor.offload.enable boolean true - cluster-wide internal
        offsets.load.buffer.size int 5242880 1.. read-only
        share.coordinator.append.linger.ms int -1 -1.. read-only
        share.coordinator.load.buffer.size int 5242880 1.. read-only
        share.coordinator.threads int 1 1.. read-only
        """,
    ),
)
