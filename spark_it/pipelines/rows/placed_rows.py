"""Rows that know where they go: what jobs make of their input and `delivery` sends.

    slice        which transaction of the batch has it; 0 to the plan's slice count - 1
    source       where it comes from, then block and line: the order in which a slice is sent
    topic, partition, key, value, timestamp (ms; null: now), headers
    is_dead      whether it is a dead letter
    is_damage    whether the dead letter is for the rest of a damaged file

All is a function of the row alone, so a batch that is done again has the same slices.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, NamedTuple

from wirebroker.client.records.partitioning import partition_for
from wirebroker.pipelines.job.errors import BadRowError

COLUMNS: Final = (
    "slice INT, source STRING, block LONG, line LONG, topic STRING, partition INT, key BINARY,"
    " value BINARY, timestamp LONG, headers ARRAY<STRUCT<key: STRING, value: BINARY>>,"
    " is_dead BOOLEAN, is_damage BOOLEAN"
)
SOURCE_ORDER: Final = ("source", "block", "line")


class PlacedRow(NamedTuple):
    """A row, as above."""

    slice: int
    source: str
    block: int
    line: int
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: list[dict[str, Any]]
    is_dead: bool = False
    is_damage: bool = False


def check_time(time_ms: int) -> None:
    """Check that a record can have this time.

    Raises:
        BadRowError: It cannot.
    """
    if time_ms == 0:
        raise BadRowError("has the time 0 (1970-01-01T00:00:00Z), which librdkafka sends as now")


def partition_of(key: bytes | None, value: bytes | None, source: str, count: int) -> int:
    """Return a record's partition: by its key as Java's producer does, else by what it is.

    Java's producer sends records without a key wherever its batch is; here it must be the same
    partition each time, so that a batch can be done again.
    """
    if key is not None:
        return partition_for(key, count)
    digest = blake2b(value or b"", digest_size=4, key=source.encode()[-64:]).digest()
    return int.from_bytes(digest) % count
