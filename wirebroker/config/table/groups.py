"""Configs of consumer groups, their offsets and topic; share and streams groups."""

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
        "coordinators serve only classic groups, and cache no buffers.",
        """
        group.consumer.assignment.interval.ms int 1000 0..15000 cluster-wide
        errors.deadletterqueue.auto.create.topics.enable boolean false - cluster-wide
        errors.deadletterqueue.topic.name.prefix string dlq. - cluster-wide
        group.coordinator.cached.buffer.max.bytes int 1048588 524288.. cluster-wide
        group.share.assignment.interval.ms int 1000 0..15000 cluster-wide
        group.streams.assignment.interval.ms int 1000 0..15000 cluster-wide
        share.coordinator.cached.buffer.max.bytes int 1048588 524288.. cluster-wide
        """,
    ),
    *kept(
        "consumer groups of the new protocol (KIP-848) are not served.",
        """
        group.consumer.assignors list uniform,range - read-only
        group.consumer.heartbeat.interval.ms int 5000 - read-only
        group.consumer.max.assignment.interval.ms int 15000 - read-only
        group.consumer.max.heartbeat.interval.ms int 15000 - read-only
        group.consumer.max.session.timeout.ms int 60000 - read-only
        group.consumer.max.size int 2147483647 - read-only
        group.consumer.migration.policy string bidirectional - read-only
        group.consumer.min.assignment.interval.ms int 0 - read-only
        group.consumer.min.heartbeat.interval.ms int 5000 - read-only
        group.consumer.min.session.timeout.ms int 45000 - read-only
        group.consumer.regex.refresh.interval.ms int 600000 - read-only internal
        group.consumer.session.timeout.ms int 45000 - read-only
        """,
    ),
    *kept(
        "share groups (KIP-932) are not served.",
        """
        group.share.assignors list simple - read-only
        group.share.delivery.count.limit int 5 - read-only
        group.share.heartbeat.interval.ms int 5000 - read-only
        group.share.initialize.retry.interval.ms int 30000 - read-only internal
        group.share.max.assignment.interval.ms int 15000 - read-only
        group.share.max.delivery.count.limit int 10 - read-only
        group.share.max.heartbeat.interval.ms int 15000 - read-only
        group.share.max.partition.max.record.locks int 4000 - read-only
        group.share.max.record.lock.duration.ms int 60000 - read-only
        group.share.max.session.timeout.ms int 60000 - read-only
        group.share.max.share.sessions int 2000 - read-only
        group.share.max.size int 200 - read-only
        group.share.min.assignment.interval.ms int 0 - read-only
        group.share.min.delivery.count.limit int 2 - read-only
        group.share.min.heartbeat.interval.ms int 5000 - read-only
        group.share.min.partition.max.record.locks int 100 - read-only
        group.share.min.record.lock.duration.ms int 15000 - read-only
        group.share.min.session.timeout.ms int 45000 - read-only
        group.share.partition.max.record.locks int 2000 - read-only
        group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister - read-only internal
        group.share.record.lock.duration.ms int 30000 - read-only
        group.share.session.timeout.ms int 45000 - read-only
        share.coordinator.append.linger.ms int -1 - read-only
        share.coordinator.cold.partition.snapshot.interval.ms int 300000 - read-only internal
        share.coordinator.load.buffer.size int 5242880 - read-only
        share.coordinator.snapshot.update.records.per.snapshot int 500 - read-only
        share.coordinator.state.topic.compression.codec int 0 - read-only
        share.coordinator.state.topic.prune.interval.ms int 300000 - read-only internal
        share.coordinator.threads int 1 - read-only
        share.coordinator.write.timeout.ms int 5000 - read-only
        share.fetch.purgatory.purge.interval.requests int 1000 - read-only
        """,  # noqa: E501 - the name of a class
    ),
    *kept(
        "streams groups (KIP-1071) are not served.",
        """
        group.streams.assignors list sticky - read-only
        group.streams.rack.aware.assignment.tags list "" - read-only
        group.streams.topology.description.plugin.class class - - read-only
        group.streams.heartbeat.interval.ms int 5000 - read-only
        group.streams.initial.rebalance.delay.ms int 3000 - read-only
        group.streams.max.assignment.interval.ms int 15000 - read-only
        group.streams.max.heartbeat.interval.ms int 15000 - read-only
        group.streams.max.session.timeout.ms int 60000 - read-only
        group.streams.max.size int 2147483647 - read-only
        group.streams.max.standby.replicas int 2 - read-only
        group.streams.min.assignment.interval.ms int 0 - read-only
        group.streams.min.heartbeat.interval.ms int 5000 - read-only
        group.streams.min.session.timeout.ms int 45000 - read-only
        group.streams.num.standby.replicas int 0 - read-only
        group.streams.session.timeout.ms int 45000 - read-only
        """,
    ),
    *kept(
        "group coordinators serve the classic protocol on the event loop.",
        """
        group.coordinator.append.linger.ms int -1 - read-only
        group.coordinator.background.threads int 2 - read-only
        group.coordinator.rebalance.protocols list classic,consumer,streams - read-only
        group.coordinator.threads int 4 - read-only
        offsets.load.buffer.size int 5242880 - read-only
        """,
    ),
)
