"""The configs of a topic: one row each, and TopicSettings, the values that storage works with.

All of Kafka 4.3's topic configs are rows, also those that take effect only with features to come
(tiered storage, replication quotas): CreateTopics, AlterConfigs and DescribeConfigs treat a topic
as Kafka does, and a topic's overrides survive in the metadata log either way.

A topic config that the topic doesn't set takes the broker's value; `synonyms` names the broker
configs that give it, highest precedence first, with the factor to the topic's unit.

A leaf.  Source: Kafka's LogConfig and ServerTopicConfigSynonyms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wirebroker.config_row import ConfigRow, ConfigType, ConfigValue

LONG_MAX: Final = (1 << 63) - 1
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

# Broker configs in another unit than the topic config they give a default to.
UNIT_FACTORS: Final = {
    "log.roll.hours": HOUR_MS,
    "log.roll.jitter.hours": HOUR_MS,
    "log.retention.hours": HOUR_MS,
    "log.retention.minutes": 60_000,
}

COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicSettings:
    """The values in force for one topic; attributes are the topic configs' names with `_`."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1_048_588
    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = HOUR_MS
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    min_insync_replicas: int = 1
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    preallocate: bool = False
    unclean_leader_election_enable: bool = False

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


def _throttled_replicas(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    if value == ("*",) or all(re.fullmatch(r"[0-9]+:[0-9]+", item) for item in value):
        return None
    return "it must be * or a list of partition:broker pairs"


def _integer(
    name: str, default: int | None, doc: str, synonyms: str = "", **more: int
) -> ConfigRow:
    text = None if default is None else str(default)
    return ConfigRow(
        name=name,
        type=ConfigType.INT,
        default=text,
        doc=doc,
        synonyms=tuple(synonyms.split()),
        at_least=more.get("at_least"),
        at_most=more.get("at_most"),
        also=more.get("also"),
        internal=default is None,
    )


def _long(
    name: str, default: int, doc: str, synonyms: str = "", *, at_least: int | None = None
) -> ConfigRow:
    return ConfigRow(
        name=name,
        type=ConfigType.LONG,
        default=str(default),
        doc=doc,
        synonyms=tuple(synonyms.split()),
        at_least=at_least,
    )


def _boolean(name: str, doc: str, synonyms: str = "") -> ConfigRow:
    return ConfigRow(
        name=name,
        type=ConfigType.BOOLEAN,
        default="false",
        doc=doc,
        synonyms=tuple(synonyms.split()),
    )


def _choice(
    name: str, choices: tuple[str, ...], default: str, doc: str, synonyms: str
) -> ConfigRow:
    return ConfigRow(
        name=name,
        type=ConfigType.STRING,
        default=default,
        doc=doc,
        choices=choices,
        synonyms=(synonyms,),
    )


_ROWS: Final = (
    ConfigRow(
        name="cleanup.policy",
        type=ConfigType.LIST,
        default="delete",
        doc="What happens to old records: `delete` drops segments by age and size, `compact` keeps "
        "the last value of each key; both may be named, and with neither everything is kept.",
        choices=("compact", "delete"),
        synonyms=("log.cleanup.policy",),
    ),
    _integer(
        "compression.gzip.level",
        -1,
        "Level when the broker compresses with gzip; -1 is gzip's own default.",
        "compression.gzip.level",
        at_least=1,
        at_most=9,
        also=-1,
    ),
    _integer(
        "compression.lz4.level",
        9,
        "Level when the broker compresses with lz4.",
        "compression.lz4.level",
        at_least=1,
        at_most=17,
    ),
    _choice(
        "compression.type",
        COMPRESSION_TYPES,
        "producer",
        "Codec in which batches are stored: `producer` leaves them as they came, anything else "
        "makes the broker recompress batches of another codec.",
        "compression.type",
    ),
    _integer(
        "compression.zstd.level",
        3,
        "Level when the broker compresses with zstd.",
        "compression.zstd.level",
        at_least=-131072,
        at_most=22,
    ),
    _long(
        "delete.retention.ms",
        DAY_MS,
        "How long compaction keeps a tombstone, so that readers can see the deletion.",
        "log.cleaner.delete.retention.ms",
        at_least=0,
    ),
    _long(
        "file.delete.delay.ms",
        60_000,
        "How long a deleted segment's file stays on disk for readers that still use it.",
        "log.segment.delete.delay.ms",
        at_least=0,
    ),
    _long(
        "flush.messages",
        LONG_MAX,
        "Number of records after which the log is forced to disk.",
        "log.flush.interval.messages",
        at_least=1,
    ),
    _long(
        "flush.ms",
        LONG_MAX,
        "Time after which written records are forced to disk.",
        "log.flush.interval.ms log.flush.scheduler.interval.ms",
        at_least=0,
    ),
    ConfigRow(
        name="follower.replication.throttled.replicas",
        type=ConfigType.LIST,
        default="",
        doc="Replicas (partition:broker pairs, or *) whose fetching is throttled.",
        check=_throttled_replicas,
    ),
    _integer(
        "index.interval.bytes",
        4096,
        "Bytes of log between two entries of the offset index.",
        "log.index.interval.bytes",
        at_least=0,
    ),
    _integer(
        "internal.segment.bytes",
        None,
        "Segment size below the minimum of segment.bytes, for tests.",
    ),
    ConfigRow(
        name="leader.replication.throttled.replicas",
        type=ConfigType.LIST,
        default="",
        doc="Replicas (partition:broker pairs, or *) whose leader throttles them.",
        check=_throttled_replicas,
    ),
    _long(
        "local.retention.bytes",
        -2,
        "Bytes kept on local disk of a tiered log; -2 means retention.bytes.",
        "log.local.retention.bytes",
        at_least=-2,
    ),
    _long(
        "local.retention.ms",
        -2,
        "Time that segments of a tiered log stay on local disk; -2 means retention.ms.",
        "log.local.retention.ms",
        at_least=-2,
    ),
    _long(
        "max.compaction.lag.ms",
        LONG_MAX,
        "Longest time a record may stay out of compaction's reach.",
        "log.cleaner.max.compaction.lag.ms",
        at_least=1,
    ),
    _integer(
        "max.message.bytes",
        1_048_588,
        "Largest record batch that is accepted, after compression.",
        "message.max.bytes",
        at_least=0,
    ),
    _long(
        "message.timestamp.after.max.ms",
        HOUR_MS,
        "How far a record's own timestamp may lie in the future; ignored with LogAppendTime.",
        "log.message.timestamp.after.max.ms",
        at_least=0,
    ),
    _long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "How far a record's own timestamp may lie in the past; ignored with LogAppendTime.",
        "log.message.timestamp.before.max.ms",
        at_least=0,
    ),
    _choice(
        "message.timestamp.type",
        TIMESTAMP_TYPES,
        "CreateTime",
        "Whose clock stamps a record: the producer's (CreateTime) or the broker's (LogAppendTime).",
        "log.message.timestamp.type",
    ),
    ConfigRow(
        name="min.cleanable.dirty.ratio",
        type=ConfigType.DOUBLE,
        default="0.5",
        doc="Part of the log that must be uncompacted before compaction starts.",
        at_least=0,
        at_most=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
    ),
    _long(
        "min.compaction.lag.ms",
        0,
        "Shortest time a record stays uncompacted.",
        "log.cleaner.min.compaction.lag.ms",
        at_least=0,
    ),
    _integer(
        "min.insync.replicas",
        1,
        "Replicas that must be in sync for a write with acks=all to be taken.",
        "min.insync.replicas",
        at_least=1,
    ),
    _boolean(
        "preallocate",
        "Reserve a segment's whole size on disk when it is created.",
        "log.preallocate",
    ),
    _boolean("remote.log.copy.disable", "Stop copying segments of a tiered log."),
    _boolean(
        "remote.log.delete.on.disable", "Delete the remote part when tiering is switched off."
    ),
    _boolean("remote.storage.enable", "Move old segments to remote storage."),
    _long(
        "retention.bytes",
        -1,
        "Size of a partition beyond which its oldest segments are deleted; -1 is no limit.",
        "log.retention.bytes",
    ),
    _long(
        "retention.ms",
        7 * DAY_MS,
        "Age at which segments are deleted; -1 is no limit.",
        "log.retention.ms log.retention.minutes log.retention.hours",
        at_least=-1,
    ),
    _integer(
        "segment.bytes",
        1 << 30,
        "Size at which a segment is closed and the next one begun.",
        "log.segment.bytes",
        at_least=1 << 20,
    ),
    _integer(
        "segment.index.bytes",
        10 << 20,
        "Size at which an index is full, so that its segment is closed.",
        "log.index.size.max.bytes",
        at_least=4,
    ),
    _long(
        "segment.jitter.ms",
        0,
        "Random part by which segment.ms is shortened, so that not all logs roll together.",
        "log.roll.jitter.ms log.roll.jitter.hours",
        at_least=0,
    ),
    _long(
        "segment.ms",
        7 * DAY_MS,
        "Age at which a segment is closed even if it isn't full.",
        "log.roll.ms log.roll.hours",
        at_least=1,
    ),
    _boolean(
        "unclean.leader.election.enable",
        "Let a replica that isn't in sync become leader when no other is left; loses records.",
        "unclean.leader.election.enable",
    ),
)

TOPIC_ROWS: Final = {row.name: row for row in _ROWS}
