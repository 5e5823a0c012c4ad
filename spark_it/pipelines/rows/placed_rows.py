"""Rows with their destinations, which jobs create and `delivery` sends.

All fields depend only on the input, so a repeated batch has the same slices.
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
    """A row with its destination.

    `slice` is the number of its transaction in the batch. `source`, `block` and `line` order the
    rows of a slice. `timestamp` is in ms; None means now. `is_damage` marks the dead letter for the
    rest of a damaged file.
    """

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
    """Raise BadRowError if a record cannot have this timestamp."""
    if time_ms == 0:
        raise BadRowError("has the time 0 (1970-01-01T00:00:00Z), which librdkafka sends as now")


def partition_of(key: bytes | None, value: bytes | None, source: str, count: int) -> int:
    """Return a record's partition: by its key as in Java's producer, else by its content.

    A repeated batch needs the same one, which Java's producer varies without a key.
    """
    if key is not None:
        return partition_for(key, count)
    digest = blake2b(value or b"", digest_size=4, key=source.encode()[-64:]).digest()
    return int.from_bytes(digest) % count
