"""Deduplication for consumers: process each message once (docs/delivery.md).

deduplicator = Deduplicator(SqliteStore("seen.sqlite"))
for record in consumer:
    with deduplicator.once(record) as is_new:
        if is_new:
            process(record)
"""

from __future__ import annotations

from wirebroker.dedup.deduplicator import MESSAGE_ID, Deduplicator, message_id
from wirebroker.dedup.stores import DatabaseStore, MemoryStore, SqliteStore

__all__ = [
    "MESSAGE_ID",
    "DatabaseStore",
    "Deduplicator",
    "MemoryStore",
    "SqliteStore",
    "message_id",
]
