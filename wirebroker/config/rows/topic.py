"""TopicSettings: the configs of a topic, a field each, with the values that storage works with.

All of Kafka 4.4's topic configs are fields, also those that take effect only with features to come
(tiered storage): CreateTopics, AlterConfigs and DescribeConfigs treat a topic
as Kafka does, and a topic's overrides survive in the metadata log either way.

A field is the config's row too (topic_field.py): default, what it does, the broker configs that
give its default, its range. The field's name is the config's with `_`.

A leaf.  Source: Kafka's LogConfig and ServerTopicConfigSynonyms.
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
    Giver,
    boolean,
    double,
    giving_rows,
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
    """The values in force for one topic; attributes are the topic configs' names with `_`."""

    cleanup_policy: tuple[str, ...] = items(
        ("delete",),
        "What happens to old records: `delete` drops segments by age and size, `compact` keeps "
        "the last value of each key; both may be named, and with neither everything is kept.",
        "log.cleanup.policy",
        choices=("compact", "delete"),
    )
    compression_gzip_level: int = integer(
        -1,
        "Level when the broker compresses with gzip; -1 is gzip's own default.",
        "compression.gzip.level",
        at_least=1,
        at_most=9,
        also=-1,
    )
    compression_lz4_level: int = integer(
        9,
        "Level when the broker compresses with lz4.",
        "compression.lz4.level",
        at_least=1,
        at_most=17,
    )
    compression_type: str = text(
        "producer",
        "Codec in which batches are stored: `producer` leaves them as they came, anything else "
        "makes the broker recompress batches of another codec.",
        "compression.type",
        choices=_COMPRESSION_TYPES,
    )
    compression_zstd_level: int = integer(
        3,
        "Level when the broker compresses with zstd.",
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
        "Let share groups write records that none of their members could process to this topic. "
        "No share groups are served here.",
        effect=Effect.SHOWN,
    )
    file_delete_delay_ms: int = long(
        60_000,
        "How long a deleted segment's file stays on disk for readers that still use it.",
        "log.segment.delete.delay.ms",
        at_least=0,
    )
    flush_messages: int = long(
        LONG_MAX,
        "Number of records after which the log is forced to disk.",
        "log.flush.interval.messages",
        at_least=1,
    )
    flush_ms: int = long(
        LONG_MAX,
        "Time after which written records are forced to disk.",
        Giver("log.flush.interval.ms"),
        Giver(
            "log.flush.scheduler.interval.ms",
            default=str(LONG_MAX),
            mutability=Mutability.READ_ONLY,
        ),
        at_least=0,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = items(
        (),
        "Replicas (partition:broker pairs, or *) whose fetching is throttled.",
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
        "Replicas (partition:broker pairs, or *) whose leader throttles them.",
        check=_throttled_replicas,
    )
    local_retention_bytes: int = long(
        -2,
        "Bytes kept on local disk of a tiered log; -2 means retention.bytes.",
        "log.local.retention.bytes",
        at_least=-2,
        effect=Effect.SHOWN,
    )
    local_retention_ms: int = long(
        -2,
        "Time that segments of a tiered log stay on local disk; -2 means retention.ms.",
        "log.local.retention.ms",
        at_least=-2,
        effect=Effect.SHOWN,
    )
    max_compaction_lag_ms: int = long(
        LONG_MAX,
        "Longest time a record may stay out of compaction's reach.",
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
        "Largest uncompressed size of a record in a compressed batch. Records that were stored "
        "before it was lowered stay readable. A whole batch may decompress to 128 MiB.",
        "max.decompressed.message.bytes",
        at_least=1,
        at_most=2_147_483_639,
    )
    message_timestamp_after_max_ms: int = long(
        HOUR_MS,
        "How far a record's own timestamp may lie in the future; ignored with LogAppendTime.",
        "log.message.timestamp.after.max.ms",
        at_least=0,
    )
    message_timestamp_before_max_ms: int = long(
        LONG_MAX,
        "How far a record's own timestamp may lie in the past; ignored with LogAppendTime.",
        "log.message.timestamp.before.max.ms",
        at_least=0,
    )
    message_timestamp_type: str = text(
        "CreateTime",
        "Whose clock stamps a record: the producer's (CreateTime) or the broker's (LogAppendTime).",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    )
    min_cleanable_dirty_ratio: float = double(
        0.5,
        "Part of the log that must be uncompacted before compaction starts.",
        "log.cleaner.min.cleanable.ratio",
        at_least=0,
        at_most=1,
    )
    min_compaction_lag_ms: int = long(
        0,
        "Shortest time a record stays uncompacted.",
        "log.cleaner.min.compaction.lag.ms",
        at_least=0,
    )
    min_insync_replicas: int = integer(
        1,
        "Replicas that must be in sync for a write with acks=all to be taken.",
        "min.insync.replicas",
        at_least=1,
    )
    preallocate: bool = boolean(
        False,
        "Make a segment's file as long as a full segment when it is created; it is cut to what it "
        "holds when the next one begins, on a clean stop, and by recovery.",
        "log.preallocate",
    )
    remote_copy_lag_bytes: int = long(
        -1,
        "Bytes at the end of a tiered log that are not copied to remote storage yet.",
        "log.remote.copy.lag.bytes",
        at_least=-1,
        effect=Effect.SHOWN,
    )
    remote_copy_lag_ms: int = long(
        0,
        "Age that a segment of a tiered log must have before it is copied to remote storage.",
        "log.remote.copy.lag.ms",
        at_least=-1,
        effect=Effect.SHOWN,
    )
    remote_log_copy_disable: bool = boolean(
        False, "Stop copying segments of a tiered log.", effect=Effect.SHOWN
    )
    remote_log_delete_on_disable: bool = boolean(
        False, "Delete the remote part when tiering is switched off.", effect=Effect.SHOWN
    )
    remote_storage_enable: bool = boolean(
        False,
        "Move old segments to remote storage, which there is none of: true is refused, and in a "
        "cluster partitions of such a topic are not served.",
    )
    retention_bytes: int = long(
        -1,
        "Size of a partition beyond which its oldest segments are deleted; -1 is no limit.",
        "log.retention.bytes",
    )
    retention_ms: int = long(
        7 * DAY_MS,
        "Age at which segments are deleted; -1 is no limit.",
        Giver("log.retention.ms"),
        minutes("log.retention.minutes"),
        hours("log.retention.hours", 168),
        at_least=-1,
    )
    segment_bytes: int = integer(
        1 << 30,
        "Size at which a segment is closed and the next one begun.",
        "log.segment.bytes",
        at_least=1 << 20,
    )
    segment_index_bytes: int = integer(
        10 << 20,
        "Size at which an index is full, so that its segment is closed.",
        "log.index.size.max.bytes",
        at_least=4,
    )
    segment_jitter_ms: int = long(
        0,
        "Random part by which segment.ms is shortened, so that not all logs roll together.",
        Giver("log.roll.jitter.ms"),
        hours("log.roll.jitter.hours", 0, 0),
        at_least=0,
    )
    segment_ms: int = long(
        7 * DAY_MS,
        "Age at which a segment is closed even if it isn't full.",
        Giver("log.roll.ms"),
        hours("log.roll.hours", 168, 1),
        at_least=1,
    )
    unclean_leader_election_enable: bool = boolean(
        False,
        "Let a replica that isn't in sync become leader when no other is left; loses records.",
        "unclean.leader.election.enable",
        effect=Effect.SHOWN,
    )

    @property
    def is_compacted(self) -> bool:
        """Tell whether the last value of each key is kept (and each record needs a key)."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted_by_retention(self) -> bool:
        """Tell whether retention.ms and retention.bytes delete segments."""
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """Return the age at which the active segment rolls: compaction may want it sooner."""
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms


TOPIC_ROWS: Final = topic_rows(TopicSettings)
GIVING_ROWS: Final = giving_rows(TopicSettings)
# Broker configs in another unit than the topic config they give a default to.
UNIT_FACTORS: Final = unit_factors(TopicSettings)
