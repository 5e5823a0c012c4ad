"""Groups of consumers, their offsets and topic; share and streams groups."""

from __future__ import annotations

from typing import Final

from wirebroker.config.forms import INT_MAX, integer, kept, long, named, short
from wirebroker.config.row import Effect

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
        "Partitions of __share_group_state; read from share groups on.",
        1,
        effect=Effect.SHOWN,
    ),
    short(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Replicas of __share_group_state; read from share groups on.",
        1,
        effect=Effect.SHOWN,
        profile="1",
    ),
    short(
        "share.coordinator.state.topic.min.isr",
        2,
        "min.insync.replicas of __share_group_state; read from share groups on.",
        1,
        effect=Effect.SHOWN,
        profile="1",
    ),
    integer(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        "Segment size of __share_group_state; read from share groups on.",
        1,
        effect=Effect.SHOWN,
    ),
    integer(
        "group.min.session.timeout.ms",
        6000,
        "Shortest session timeout that a member may ask for.",
    ),
    integer(
        "group.max.session.timeout.ms",
        1_800_000,
        "Longest session timeout that a member may ask for.",
    ),
    integer(
        "group.max.size",
        INT_MAX,
        "Most members of a group.",
        1,
    ),
    integer(
        "offset.metadata.max.bytes",
        4096,
        "Longest text that a commit may add to an offset.",
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
        "How often offsets are looked through for expired ones.",
        1,
    ),
    integer(
        "offsets.commit.timeout.ms",
        5000,
        "How long a commit may take to be on the log.",
        1,
    ),
    integer(
        "offsets.topic.compression.codec",
        0,
        "Codec of the records in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
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
        "Coordinators here keep no such buffer, and no such groups are served.",
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
    *named("""
        group.consumer.assignors list
        group.streams.assignors list
        group.streams.rack.aware.assignment.tags list
        group.streams.topology.description.plugin.class
        group.consumer.heartbeat.interval.ms
        group.consumer.max.assignment.interval.ms
        group.consumer.max.heartbeat.interval.ms
        group.consumer.max.session.timeout.ms
        group.consumer.max.size
        group.consumer.migration.policy
        group.consumer.min.assignment.interval.ms
        group.consumer.min.heartbeat.interval.ms
        group.consumer.min.session.timeout.ms
        group.consumer.regex.refresh.interval.ms
        group.consumer.session.timeout.ms
        group.coordinator.append.linger.ms
        group.coordinator.background.threads
        group.coordinator.rebalance.protocols list
        group.coordinator.threads
        group.share.assignors list
        group.share.delivery.count.limit
        group.share.heartbeat.interval.ms
        group.share.initialize.retry.interval.ms
        group.share.max.assignment.interval.ms
        group.share.max.delivery.count.limit
        group.share.max.heartbeat.interval.ms
        group.share.max.partition.max.record.locks
        group.share.max.record.lock.duration.ms
        group.share.max.session.timeout.ms
        group.share.max.share.sessions
        group.share.max.size
        group.share.min.assignment.interval.ms
        group.share.min.delivery.count.limit
        group.share.min.heartbeat.interval.ms
        group.share.min.partition.max.record.locks
        group.share.min.record.lock.duration.ms
        group.share.min.session.timeout.ms
        group.share.partition.max.record.locks
        group.share.persister.class.name
        group.share.record.lock.duration.ms
        group.share.session.timeout.ms
        group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms
        group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms
        group.streams.max.session.timeout.ms
        group.streams.max.size
        group.streams.max.standby.replicas
        group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms
        group.streams.min.session.timeout.ms
        group.streams.num.standby.replicas
        group.streams.session.timeout.ms
        offsets.load.buffer.size
        share.coordinator.append.linger.ms
        share.coordinator.cold.partition.snapshot.interval.ms
        share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot
        share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.prune.interval.ms
        share.coordinator.threads
        share.coordinator.write.timeout.ms
        share.fetch.purgatory.purge.interval.requests
    """),
)
