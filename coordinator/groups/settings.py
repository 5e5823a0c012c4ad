"""Settings of the group coordinator, from Kafka's configs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from wirebroker.config.table.consumer_groups import ASSIGNORS
from wirebroker.config.table.share_members import SHARE_ASSIGNORS
from wirebroker.coordinator.groups.streams_settings import StreamsSettings

if TYPE_CHECKING:
    from wirebroker.config import Config

_MINUTE_MS = 60_000

# Session of a new member until its first rebalance ends (GroupCoordinatorConfig.
# CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS); not configurable.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * _MINUTE_MS


class MigrationPolicy(Enum):
    """Directions of online migration that are allowed (KIP-848)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE}

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE}


@dataclass(slots=True, frozen=True)
class GroupSettings:
    """Current settings; the defaults are Kafka's.

    Attributes:
        consumer_assignors: Names of the assignors that consumer groups may use; the first is used
            unless members request another.
        consumer_regex_refresh_interval_ms: How often the topics of subscribed patterns are
            searched.
    """

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * _MINUTE_MS
    offsets_retention_check_interval_ms: int = 600_000
    offsets_commit_timeout_ms: int = 5_000
    offsets_topic_partition_count: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 104_857_600
    # Number of the codec.
    offsets_topic_compression_codec: int = 0
    # The kinds of groups that are served, and how their members join.
    rebalance_protocols: frozenset[str] = frozenset(("classic", "consumer", "streams"))
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    consumer_max_size: int = 2**31 - 1
    consumer_session_timeout_ms: int = 45_000
    consumer_min_session_timeout_ms: int = 45_000
    consumer_max_session_timeout_ms: int = 60_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_min_heartbeat_interval_ms: int = 5_000
    consumer_max_heartbeat_interval_ms: int = 15_000
    consumer_assignment_interval_ms: int = 1_000
    consumer_min_assignment_interval_ms: int = 0
    consumer_max_assignment_interval_ms: int = 15_000
    consumer_regex_refresh_interval_ms: int = 600_000
    share_assignor: str = "simple"
    share_max_size: int = 200
    share_session_timeout_ms: int = 45_000
    share_min_session_timeout_ms: int = 45_000
    share_max_session_timeout_ms: int = 60_000
    share_heartbeat_interval_ms: int = 5_000
    share_min_heartbeat_interval_ms: int = 5_000
    share_max_heartbeat_interval_ms: int = 15_000
    share_assignment_interval_ms: int = 1_000
    share_min_assignment_interval_ms: int = 0
    share_max_assignment_interval_ms: int = 15_000
    share_initialize_retry_interval_ms: int = 30_000
    streams: StreamsSettings = field(default_factory=StreamsSettings)

    def with_dynamic(self, config: Config) -> GroupSettings:
        """Return these settings with the current dynamic configs."""
        return replace(
            self,
            consumer_assignment_interval_ms=config.int("group.consumer.assignment.interval.ms"),
            share_assignment_interval_ms=config.int("group.share.assignment.interval.ms"),
            streams=self.streams.with_dynamic(config),
        )

    @classmethod
    def from_config(cls, config: Config) -> GroupSettings:
        """Return a broker's settings."""
        settings = cls(
            min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            max_size=config.int("group.max.size"),
            offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * _MINUTE_MS,
            offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
            offsets_commit_timeout_ms=config.int("offsets.commit.timeout.ms"),
            offsets_topic_partition_count=config.int("offsets.topic.num.partitions"),
            offsets_topic_replication_factor=config.int("offsets.topic.replication.factor"),
            offsets_topic_segment_bytes=config.int("offsets.topic.segment.bytes"),
            offsets_topic_compression_codec=config.int("offsets.topic.compression.codec"),
            streams=StreamsSettings.from_config(config),
        )
        return settings._with_consumer_groups(config)._with_share_groups(config)

    def _with_consumer_groups(self, config: Config) -> GroupSettings:
        return replace(
            self,
            rebalance_protocols=frozenset(
                name.lower() for name in config.list("group.coordinator.rebalance.protocols")
            ),
            consumer_assignors=tuple(
                ASSIGNORS[name] for name in config.list("group.consumer.assignors")
            ),
            consumer_migration_policy=MigrationPolicy(
                config.str("group.consumer.migration.policy").lower()
            ),
            consumer_max_size=config.int("group.consumer.max.size"),
            consumer_session_timeout_ms=config.int("group.consumer.session.timeout.ms"),
            consumer_min_session_timeout_ms=config.int("group.consumer.min.session.timeout.ms"),
            consumer_max_session_timeout_ms=config.int("group.consumer.max.session.timeout.ms"),
            consumer_heartbeat_interval_ms=config.int("group.consumer.heartbeat.interval.ms"),
            consumer_min_heartbeat_interval_ms=config.int(
                "group.consumer.min.heartbeat.interval.ms"
            ),
            consumer_max_heartbeat_interval_ms=config.int(
                "group.consumer.max.heartbeat.interval.ms"
            ),
            consumer_assignment_interval_ms=config.int("group.consumer.assignment.interval.ms"),
            consumer_min_assignment_interval_ms=config.int(
                "group.consumer.min.assignment.interval.ms"
            ),
            consumer_max_assignment_interval_ms=config.int(
                "group.consumer.max.assignment.interval.ms"
            ),
            consumer_regex_refresh_interval_ms=config.int(
                "group.consumer.regex.refresh.interval.ms"
            ),
        )

    def _with_share_groups(self, config: Config) -> GroupSettings:
        (assignor,) = config.list("group.share.assignors")
        retry_ms = config.int("group.share.initialize.retry.interval.ms")
        return replace(
            self,
            share_assignor=SHARE_ASSIGNORS[assignor],
            share_max_size=config.int("group.share.max.size"),
            share_session_timeout_ms=config.int("group.share.session.timeout.ms"),
            share_min_session_timeout_ms=config.int("group.share.min.session.timeout.ms"),
            share_max_session_timeout_ms=config.int("group.share.max.session.timeout.ms"),
            share_heartbeat_interval_ms=config.int("group.share.heartbeat.interval.ms"),
            share_min_heartbeat_interval_ms=config.int("group.share.min.heartbeat.interval.ms"),
            share_max_heartbeat_interval_ms=config.int("group.share.max.heartbeat.interval.ms"),
            share_assignment_interval_ms=config.int("group.share.assignment.interval.ms"),
            share_min_assignment_interval_ms=config.int("group.share.min.assignment.interval.ms"),
            share_max_assignment_interval_ms=config.int("group.share.max.assignment.interval.ms"),
            share_initialize_retry_interval_ms=max(retry_ms, self.offsets_commit_timeout_ms),
        )
