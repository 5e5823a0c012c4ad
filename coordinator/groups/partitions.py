"""The partition of an internal topic for a name: Java's hash modulo the partition count.

Source: Kafka's GroupCoordinatorService.partitionFor, Utils.abs; Java's String.hashCode.
"""

from __future__ import annotations

import operator
import sys
from array import array
from functools import lru_cache
from typing import Final

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"


_UTF_16: Final = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
# 31^0, 31^1, … modulo 2^32: weights of UTF-16 units, the last unit first.
_MOST_UNITS: Final = 256
_WEIGHTS: Final = tuple(pow(31, exponent, 1 << 32) for exponent in range(_MOST_UNITS))
# Cached names, at most 2 MB in all.
_MOST_NAMES: Final = 2_000
_LONGEST_NAME: Final = 255


def java_hash(text: str) -> int:
    """Return Java's hash code of a text, a signed int32."""
    units = array("H", text.encode(_UTF_16, "surrogatepass"))
    value = 0
    for begin in range(0, len(units), _MOST_UNITS):
        part = units[begin : begin + _MOST_UNITS]
        part.reverse()
        shift = pow(31, len(part), 1 << 32)
        value = (value * shift + sum(map(operator.mul, part, _WEIGHTS))) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def partition_for(name: str, partition_count: int) -> int:
    """Return the partition of a group or transactional id."""
    if len(name) > _LONGEST_NAME:
        return _partition_for(name, partition_count)
    return _cached_partitions(name, partition_count)


def _partition_for(name: str, partition_count: int) -> int:
    value = java_hash(name)
    # Java's smallest int has no absolute value.
    return 0 if value == -(1 << 31) else abs(value) % partition_count


_cached_partitions = lru_cache(_MOST_NAMES)(_partition_for)
