"""The file and directory names that Kafka uses in a log directory; others are ignored.

    00000000000000000200.log     a file of a segment: 20 digits, an offset
    orders-7                     a partition's directory

Kafka never writes `orders-007`, `orders-٣` or an offset of 65 bits.

Source: Kafka's LogFileUtils.filenamePrefixFromOffset, LocalLog.logDirName.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# The suffix of files that are removed after file.delete.delay.ms, or at the next start.
DELETED_SUFFIX = ".deleted"

_MOST_OFFSET = (1 << 63) - 1
_MOST_PARTITION = (1 << 31) - 1
_OFFSET_DIGITS = 20
_PARTITION = re.compile(r"(\S+)-(0|[1-9][0-9]{0,9})")
_ASIDE = re.compile(r"(\S+)-(0|[1-9][0-9]{0,9})\.\S+-(delete|stray|future)")


class PartitionName(NamedTuple):
    """A partition as named by a directory.

    Attributes:
        topic: The topic's name.
        partition: The partition's number.
        aside: `delete`, `stray` or `future` for a directory that was set aside.
    """

    topic: str
    partition: int
    aside: str | None = None


def offset_of(digits: str) -> int | None:
    """Return the offset in a file name's part before the first dot, or None."""
    if len(digits) != _OFFSET_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    offset = int(digits)
    return offset if offset <= _MOST_OFFSET else None


def offset_before(name: str, suffix: str) -> int | None:
    """Return the offset in a file name that ends with `suffix`, or None."""
    return offset_of(name.removesuffix(suffix)) if name.endswith(suffix) else None


def partition_of(folder: str) -> PartitionName | None:
    """Return the partition of a directory's name, or None."""
    aside = _ASIDE.fullmatch(folder)
    match = aside or _PARTITION.fullmatch(folder)
    if match is None or int(match[2]) > _MOST_PARTITION:
        return None
    return PartitionName(match[1], int(match[2]), aside[3] if aside else None)
