"""Settings of the group coordinator, from Kafka's configs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.config import Config

_MINUTE_MS = 60_000

# Session of a new member until its first rebalance ends (GroupCoordinatorConfig.
# CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS); not configurable.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * _MINUTE_MS


@dataclass(slots=True, frozen=True)
class GroupSettings:
    """Current settings; the defaults are Kafka's."""

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

    @classmethod
    def from_config(cls, config: Config) -> GroupSettings:
        """Return a broker's settings."""
        return cls(
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
        )
