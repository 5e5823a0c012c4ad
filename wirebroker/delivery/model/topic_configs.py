"""Configs of the topics that the service creates."""

from __future__ import annotations

from typing import Final

# Entries and dead letters are longer than the records that they contain.
_MOST_BYTES: Final = 32 << 20
CLEANUP_POLICY: Final = "cleanup.policy"
LETTERS_CONFIG: Final = {"max.message.bytes": str(_MOST_BYTES)}
PENDING_CONFIG: Final = {
    CLEANUP_POLICY: "compact",
    # PendingStore is rebuilt before an index becomes older than this.
    "delete.retention.ms": "86400000",
    "compression.type": "producer",
    **LETTERS_CONFIG,
}
