"""Which partition of an internal topic a name belongs to: Java's hash of it, modulo the count.

Source: Kafka's GroupCoordinatorService.partitionFor, Utils.abs; Java's String.hashCode.
"""

from __future__ import annotations

import sys
from array import array
from functools import lru_cache
from operator import mul
from typing import Final

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"

_FACTOR: Final = 31
_MASK: Final = 0xFFFFFFFF
# UTF-16 units that are hashed at once, and what each of them counts for in a whole block.
_BLOCK: Final = 256
_WEIGHTS: Final = tuple(pow(_FACTOR, power, 1 << 32) for power in reversed(range(_BLOCK)))
_WHOLE_BLOCK: Final = pow(_FACTOR, _BLOCK, 1 << 32)
_UNITS: Final = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"

# A longer name is hashed each time: 10,000 of the longest would hold 300 MB.
_LONGEST_CACHED: Final = 128


def java_hash(text: str) -> int:
    """Return Java's hash code of a text: over its UTF-16 units, as a signed int32.

    Blocks are multiplied and summed by Python's own functions: a third of a loop's time.
    """
    units = array("H", text.encode(_UNITS, "surrogatepass"))
    first = len(units) % _BLOCK
    value: int = sum(map(mul, units[:first], _WEIGHTS[_BLOCK - first :])) & _MASK
    for start in range(first, len(units), _BLOCK):
        block: int = sum(map(mul, units[start : start + _BLOCK], _WEIGHTS))
        value = (value * _WHOLE_BLOCK + block) & _MASK
    return value - (1 << 32) if value >> 31 else value


def partition_for(name: str, partition_count: int) -> int:
    """Return the partition that a group, or a transactional id, is kept in."""
    if len(name) > _LONGEST_CACHED:
        return _partition_for(name, partition_count)
    return _cached_partition_for(name, partition_count)


def _partition_for(name: str, partition_count: int) -> int:
    value = java_hash(name)
    # Java's smallest int has no absolute value.
    return 0 if value == -(1 << 31) else abs(value) % partition_count


_cached_partition_for = lru_cache(maxsize=10_000)(_partition_for)
