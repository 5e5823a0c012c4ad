"""The file and directory names that Kafka uses in a log directory; others are ignored.

Kafka never writes `orders-007`, `orders-٣` or an offset of 65 bits.

Source: Kafka's LogFileUtils.filenamePrefixFromOffset, LocalLog.logDirName.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DELETED_SUFFIX = ".deleted"

_MOST_OFFSET = (1 << 63) - 1
_MOST_PARTITION = (1 << 31) - 1
_OFFSET_DIGITS = 20
_PARTITION = re.compile(r"(\S+)-(0|[1-9][0-9]{0,9})")
_ASIDE = re.compile(r"(\S+)-(0|[1-9][0-9]{0,9})\.\S+-(delete|stray|future)")


class PartitionName(NamedTuple):
    """A partition as named by a directory."""

    topic: str
    partition: int
    aside: str | None = None  # `delete`, `stray` or `future` for one that was set aside


def offset_of(digits: str) -> int | None:
    """Return the offset in the first part of a file name, or None."""
    if len(digits) != _OFFSET_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    offset = int(digits)
    return offset if offset <= _MOST_OFFSET else None


def offset_before(name: str, suffix: str) -> int | None:
    """Return the offset in a file name that ends with `suffix`, or None."""
    return offset_of(name.removesuffix(suffix)) if name.endswith(suffix) else None


def partition_of(folder: str) -> PartitionName | None:
    """Return the partition that a directory's name denotes, or None."""
    aside = _ASIDE.fullmatch(folder)
    match = aside or _PARTITION.fullmatch(folder)
    if match is None or int(match[2]) > _MOST_PARTITION:
        return None
    return PartitionName(match[1], int(match[2]), aside[3] if aside else None)
