"""Which partition of an internal topic a name belongs to: Java's hash of it, modulo the count.

Source: Kafka's GroupCoordinatorService.partitionFor, Utils.abs; Java's String.hashCode.
"""

from __future__ import annotations

from functools import lru_cache

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"


def java_hash(text: str) -> int:
    """Return Java's hash code of a text: over its UTF-16 units, as a signed int32."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=10_000)
def partition_for(name: str, partition_count: int) -> int:
    """Return the partition that a group, or a transactional id, is kept in."""
    value = java_hash(name)
    # Java's smallest int has no absolute value.
    return 0 if value == -(1 << 31) else abs(value) % partition_count
