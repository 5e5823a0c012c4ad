"""Configs of classic groups, of offsets and their topic; of share and streams groups."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import INT_MAX, integer, kept, long, short
from wirebroker.config.rows.row import Effect

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
        "Partitions of __share_group_state; not used, because share groups are not served.",
        1,
        effect=Effect.SHOWN,
    ),
    short(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Replicas of __share_group_state; not used, because share groups are not served.",
        1,
        effect=Effect.SHOWN,
        profile="1",
    ),
    short(
        "share.coordinator.state.topic.min.isr",
        2,
        "min.insync.replicas of __share_group_state; not used, because share groups are not "
        "served.",
        1,
        effect=Effect.SHOWN,
        profile="1",
    ),
    integer(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        "Segment size of __share_group_state; not used, because share groups are not served.",
        1,
        effect=Effect.SHOWN,
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
        "coordinators do not serve share and streams groups, and cache no buffers.",
        """
        errors.deadletterqueue.auto.create.topics.enable boolean false - cluster-wide
        errors.deadletterqueue.topic.name.prefix string dlq. - cluster-wide
        group.coordinator.cached.buffer.max.bytes int 1048588 524288.. cluster-wide
        group.share.assignment.interval.ms int 1000 0..15000 cluster-wide
        group.streams.assignment.interval.ms int 1000 0..15000 cluster-wide
        share.coordinator.cached.buffer.max.bytes int 1048588 524288.. cluster-wide
        """,
    ),
    *kept(
        "share groups (KIP-932) are not served.",
        """
        group.share.assignor.offload.enable boolean true - cluster-wide internal
        group.share.assignors list simple - read-only
        group.share.delivery.count.limit int 5 2..10 read-only
        group.share.dlq.manager.class.name string org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager - read-only internal
        group.share.heartbeat.interval.ms int 5000 1.. read-only
        group.share.initialize.retry.interval.ms int 30000 1.. read-only internal
        group.share.max.assignment.interval.ms int 15000 0.. read-only
        group.share.max.delivery.count.limit int 10 5..25 read-only
        group.share.max.heartbeat.interval.ms int 15000 1.. read-only
        group.share.max.partition.max.record.locks int 4000 2000..10000 read-only
        group.share.max.record.lock.duration.ms int 60000 30000..3600000 read-only
        group.share.max.session.timeout.ms int 60000 1.. read-only
        group.share.max.share.sessions int 2000 1.. read-only
        group.share.max.size int 200 1..1000 read-only
        group.share.min.assignment.interval.ms int 0 0.. read-only
        group.share.min.delivery.count.limit int 2 2..5 read-only
        group.share.min.heartbeat.interval.ms int 5000 1.. read-only
        group.share.min.partition.max.record.locks int 100 100..2000 read-only
        group.share.min.record.lock.duration.ms int 15000 1000..30000 read-only
        group.share.min.session.timeout.ms int 45000 1.. read-only
        group.share.partition.max.record.locks int 2000 100..10000 read-only
        group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister - read-only internal
        group.share.record.lock.duration.ms int 30000 1000..3600000 read-only
        group.share.session.timeout.ms int 45000 1.. read-only
        share.coordinator.append.linger.ms int -1 - read-only
        share.coordinator.cold.partition.snapshot.interval.ms int 300000 - read-only internal
        share.coordinator.load.buffer.size int 5242880 - read-only
        share.coordinator.snapshot.update.records.per.snapshot int 500 - read-only
        share.coordinator.state.topic.compression.codec int 0 - read-only
        share.coordinator.state.topic.prune.interval.ms int 300000 - read-only internal
        share.coordinator.threads int 1 - read-only
        share.coordinator.write.timeout.ms int 5000 - read-only
        share.fetch.purgatory.purge.interval.requests int 1000 - read-only
        """,  # noqa: E501 - names of classes
    ),
    *kept(
        "streams groups (KIP-1071) are not served.",
        """
        group.streams.acceptable.recovery.lag long 10000 0.. read-only internal
        group.streams.assignor.offload.enable boolean true - cluster-wide internal
        group.streams.assignors list sticky - read-only
        group.streams.rack.aware.assignment.tags list "" - read-only
        group.streams.topology.description.plugin.class class - - read-only
        group.streams.heartbeat.interval.ms int 5000 1.. read-only
        group.streams.initial.rebalance.delay.ms int 3000 0.. read-only
        group.streams.max.assignment.interval.ms int 15000 0.. read-only
        group.streams.max.heartbeat.interval.ms int 15000 1.. read-only
        group.streams.max.session.timeout.ms int 60000 1.. read-only
        group.streams.max.size int 2147483647 1.. read-only
        group.streams.max.standby.replicas int 2 0.. read-only
        group.streams.max.warmup.replicas int 20 0.. read-only internal
        group.streams.min.assignment.interval.ms int 0 0.. read-only
        group.streams.min.heartbeat.interval.ms int 5000 1.. read-only
        group.streams.min.session.timeout.ms int 45000 1.. read-only
        group.streams.min.task.offset.interval.ms int 15000 1.. read-only internal
        group.streams.num.standby.replicas int 0 0.. read-only
        group.streams.num.warmup.replicas int 2 0.. read-only internal
        group.streams.session.timeout.ms int 45000 1.. read-only
        group.streams.task.offset.interval.ms int 60000 1.. read-only internal
        """,
    ),
    *kept(
        "group coordinators run on the event loop, without threads.",
        """
        group.coordinator.append.linger.ms int -1 - read-only
        group.coordinator.background.threads int 2 1.. read-only
        group.coordinator.threads int 4 1.. read-only
        group.consumer.assignor.offload.enable boolean true - cluster-wide internal
        offsets.load.buffer.size int 5242880 1.. read-only
        """,
    ),
)
