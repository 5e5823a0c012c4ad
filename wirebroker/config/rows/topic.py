"""TopicSettings: the configs of a topic, one field each, named with `_`.

All of Kafka 4.4's topic configs are fields, including those without effect (tiered storage), so
that the metadata log keeps all overrides.

Source: Kafka's LogConfig and ServerTopicConfigSynonyms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import Effect, Mutability
from wirebroker.config.rows.topic_field import (
    DAY_MS,
    HOUR_MS,
    LONG_MAX,
    TopicDefault,
    boolean,
    broker_default_rows,
    double,
    hours,
    integer,
    items,
    long,
    minutes,
    text,
    topic_rows,
    unit_factors,
)

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue

__all__ = ["GIVING_ROWS", "LONG_MAX", "TOPIC_ROWS", "UNIT_FACTORS", "TopicSettings"]

_COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _throttled_replicas(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    if value == ("*",) or all(re.fullmatch(r"[0-9]+:[0-9]+", item) for item in value):
        return None
    return "it must be * or a list of partition:broker pairs"


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicSettings:
    """The values in force for one topic."""

    cleanup_policy: tuple[str, ...] = items(
        ("delete",),
        "What happens to old records: `delete` deletes segments by age and size, `compact` keeps "
        "the last value of each key; both can be set, and with neither all records are kept.",
        "log.cleanup.policy",
        choices=("compact", "delete"),
    )
    compression_gzip_level: int = integer(
        -1,
        "Level at which the broker compresses with gzip; -1 is gzip's default.",
        "compression.gzip.level",
        at_least=1,
        at_most=9,
        also=-1,
    )
    compression_lz4_level: int = integer(
        9,
        "Level at which the broker compresses with lz4.",
        "compression.lz4.level",
        at_least=1,
        at_most=17,
    )
    compression_type: str = text(
        "producer",
        "Codec in which batches are stored: `producer` keeps the producer's codec; with any "
        "other value, the broker recompresses batches of another codec.",
        "compression.type",
        choices=_COMPRESSION_TYPES,
    )
    compression_zstd_level: int = integer(
        3,
        "Level at which the broker compresses with zstd.",
        "compression.zstd.level",
        at_least=-131072,
        at_most=22,
    )
    delete_retention_ms: int = long(
        DAY_MS,
        "How long compaction keeps a tombstone, so that readers can see the deletion.",
        "log.cleaner.delete.retention.ms",
        at_least=0,
    )
    errors_deadletterqueue_group_enable: bool = boolean(
        False,
        "Let share groups write records that they could not process to this topic.",
    )
    file_delete_delay_ms: int = long(
        60_000,
        "How long the file of a deleted segment stays on disk for readers that still use it.",
        "log.segment.delete.delay.ms",
        at_least=0,
    )
    flush_messages: int = long(
        LONG_MAX,
        "Number of records after which the log is flushed to disk.",
        "log.flush.interval.messages",
        at_least=1,
    )
    flush_ms: int = long(
        LONG_MAX,
        "Time after which appended records are flushed to disk.",
        TopicDefault("log.flush.interval.ms"),
        TopicDefault(
            "log.flush.scheduler.interval.ms",
            default=str(LONG_MAX),
            mutability=Mutability.READ_ONLY,
        ),
        at_least=0,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = items(
        (),
        "Replicas (partition:broker pairs, or *) whose replication is throttled on the "
        "follower's side.",
        check=_throttled_replicas,
    )
    index_interval_bytes: int = integer(
        4096,
        "Bytes of log between two entries of the offset index.",
        "log.index.interval.bytes",
        at_least=0,
    )
    internal_segment_bytes: int | None = integer(
        None, "Segment size below the minimum of segment.bytes, for tests.", internal=True
    )
    leader_replication_throttled_replicas: tuple[str, ...] = items(
        (),
        "Replicas (partition:broker pairs, or *) whose replication is throttled on the leader's "
        "side.",
        check=_throttled_replicas,
    )
    local_retention_bytes: int = long(
        -2,
        "Bytes of a tiered log that are kept on local disk; -2 means retention.bytes.",
        "log.local.retention.bytes",
        at_least=-2,
        effect=Effect.SHOWN,
    )
    local_retention_ms: int = long(
        -2,
        "How long segments of a tiered log stay on local disk; -2 means retention.ms.",
        "log.local.retention.ms",
        at_least=-2,
        effect=Effect.SHOWN,
    )
    max_compaction_lag_ms: int = long(
        LONG_MAX,
        "Longest time that a record may stay uncompacted.",
        "log.cleaner.max.compaction.lag.ms",
        at_least=1,
    )
    max_message_bytes: int = integer(
        1_048_588,
        "Largest record batch that is accepted, after compression.",
        "message.max.bytes",
        at_least=0,
    )
    max_decompressed_message_bytes: int = integer(
        2_147_483_639,
        "Largest uncompressed size of a record in a compressed batch. Records stored before it "
        "was lowered stay readable. A whole batch may decompress to 128 MiB.",
        "max.decompressed.message.bytes",
        at_least=1,
        at_most=2_147_483_639,
    )
    message_timestamp_after_max_ms: int = long(
        HOUR_MS,
        "How far a record's own timestamp may be in the future; ignored with LogAppendTime.",
        "log.message.timestamp.after.max.ms",
        at_least=0,
    )
    message_timestamp_before_max_ms: int = long(
        LONG_MAX,
        "How far a record's own timestamp may be in the past; ignored with LogAppendTime.",
        "log.message.timestamp.before.max.ms",
        at_least=0,
    )
    message_timestamp_type: str = text(
        "CreateTime",
        "Clock of a record's timestamp: the producer's (CreateTime) or the broker's "
        "(LogAppendTime).",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    )
    min_cleanable_dirty_ratio: float = double(
        0.5,
        "Fraction of the log that must be uncompacted before compaction starts.",
        "log.cleaner.min.cleanable.ratio",
        at_least=0,
        at_most=1,
    )
    min_compaction_lag_ms: int = long(
        0,
        "Shortest time that a record stays uncompacted.",
        "log.cleaner.min.compaction.lag.ms",
        at_least=0,
    )
    min_insync_replicas: int = integer(
        1,
        "In-sync replicas that a write with acks=all requires.",
        "min.insync.replicas",
        at_least=1,
    )
    preallocate: bool = boolean(
        False,
        "Create segment files at full size. They are truncated to their contents when the next "
        "segment begins, on a clean stop, and by recovery.",
        "log.preallocate",
    )
    remote_copy_lag_bytes: int = long(
        -1,
        "Bytes at the end of a tiered log that are not yet copied to remote storage.",
        "log.remote.copy.lag.bytes",
        at_least=-1,
        effect=Effect.SHOWN,
    )
    remote_copy_lag_ms: int = long(
        0,
        "Age at which a segment of a tiered log is copied to remote storage.",
        "log.remote.copy.lag.ms",
        at_least=-1,
        effect=Effect.SHOWN,
    )
    remote_log_copy_disable: bool = boolean(
        False, "Stop copying segments of a tiered log.", effect=Effect.SHOWN
    )
    remote_log_delete_on_disable: bool = boolean(
        False, "Delete the remote part when tiering is disabled.", effect=Effect.SHOWN
    )
    remote_storage_enable: bool = boolean(
        False,
        "Move old segments to remote storage. Not supported: true is refused, and in a cluster "
        "partitions of such a topic are not served.",
    )
    retention_bytes: int = long(
        -1,
        "Size of a partition above which its oldest segments are deleted; -1 means no limit.",
        "log.retention.bytes",
    )
    retention_ms: int = long(
        7 * DAY_MS,
        "Age at which segments are deleted; -1 means no limit.",
        TopicDefault("log.retention.ms"),
        minutes("log.retention.minutes"),
        hours("log.retention.hours", 168),
        at_least=-1,
    )
    segment_bytes: int = integer(
        1 << 30,
        "Size at which a segment is closed and the next one begins.",
        "log.segment.bytes",
        at_least=1 << 20,
    )
    segment_index_bytes: int = integer(
        10 << 20,
        "Size at which an index is full and its segment is closed.",
        "log.index.size.max.bytes",
        at_least=4,
    )
    segment_jitter_ms: int = long(
        0,
        "Random reduction of segment.ms, so that not all logs roll at the same time.",
        TopicDefault("log.roll.jitter.ms"),
        hours("log.roll.jitter.hours", 0, 0),
        at_least=0,
    )
    segment_ms: int = long(
        7 * DAY_MS,
        "Age at which a segment is closed even if it is not full.",
        TopicDefault("log.roll.ms"),
        hours("log.roll.hours", 168, 1),
        at_least=1,
    )
    unclean_leader_election_enable: bool = boolean(
        False,
        "Let a replica that is not in sync become leader if no other is available; records can "
        "be lost.",
        "unclean.leader.election.enable",
    )

    @property
    def is_compacted(self) -> bool:
        """Whether compaction keeps the last value of each key."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted_by_retention(self) -> bool:
        """Whether retention.ms and retention.bytes delete segments."""
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The age at which the active segment rolls, limited by the compaction lag."""
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms


TOPIC_ROWS: Final = topic_rows(TopicSettings)
GIVING_ROWS: Final = broker_default_rows(TopicSettings)
UNIT_FACTORS: Final = unit_factors(TopicSettings)
