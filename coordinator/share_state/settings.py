"""Settings of the share coordinator, from Kafka's configs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.config import Config


@dataclass(slots=True, frozen=True)
class ShareStateSettings:
    """The settings; the defaults are Kafka's."""

    topic_partition_count: int = 50
    topic_replication_factor: int = 3
    topic_min_isr: int = 2
    topic_segment_bytes: int = 104_857_600
    # Number of the codec.
    topic_compression_codec: int = 0
    updates_per_snapshot: int = 500
    write_timeout_ms: int = 5_000
    prune_interval_ms: int = 300_000
    cold_snapshot_interval_ms: int = 300_000

    @classmethod
    def from_config(cls, config: Config) -> ShareStateSettings:
        """Return a broker's settings."""
        return cls(
            topic_partition_count=config.int("share.coordinator.state.topic.num.partitions"),
            topic_replication_factor=config.int("share.coordinator.state.topic.replication.factor"),
            topic_min_isr=config.int("share.coordinator.state.topic.min.isr"),
            topic_segment_bytes=config.int("share.coordinator.state.topic.segment.bytes"),
            topic_compression_codec=config.int("share.coordinator.state.topic.compression.codec"),
            updates_per_snapshot=config.int(
                "share.coordinator.snapshot.update.records.per.snapshot"
            ),
            write_timeout_ms=config.int("share.coordinator.write.timeout.ms"),
            prune_interval_ms=config.int("share.coordinator.state.topic.prune.interval.ms"),
            cold_snapshot_interval_ms=config.int(
                "share.coordinator.cold.partition.snapshot.interval.ms"
            ),
        )
