"""Settings of the transaction coordinator, from Kafka's configs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.config import Config

_DAY_MS = 24 * 60 * 60_000


@dataclass(slots=True, frozen=True)
class TransactionSettings:
    """Current settings; the defaults are Kafka's."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 7 * _DAY_MS
    abort_interval_ms: int = 10_000
    id_expiration_interval_ms: int = 3_600_000
    topic_partition_count: int = 50
    topic_replication_factor: int = 3
    topic_min_isr: int = 2
    topic_segment_bytes: int = 104_857_600

    @classmethod
    def from_config(cls, config: Config) -> TransactionSettings:
        """Return a broker's settings."""
        return cls(
            max_timeout_ms=config.int("transaction.max.timeout.ms"),
            id_expiration_ms=config.int("transactional.id.expiration.ms"),
            abort_interval_ms=config.int(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ),
            id_expiration_interval_ms=config.int(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
            topic_partition_count=config.int("transaction.state.log.num.partitions"),
            topic_replication_factor=config.int("transaction.state.log.replication.factor"),
            topic_min_isr=config.int("transaction.state.log.min.isr"),
            topic_segment_bytes=config.int("transaction.state.log.segment.bytes"),
        )
