"""Valid and malformed record sets for a partition of a Produce request.

`HELD_BACK` names the shapes that are not sent, each with the reason: if only one broker accepts a
shape, the logs and all later responses differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from compat_tests.lockstep.steps import Expression, call

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TIMESTAMP_MS = 1_700_000_000_000
_HOUR_MS = 3_600_000
_NOW = Expression("NOW")

HELD_BACK: dict[str, str] = {
    "null": "Apache Kafka never answers such a Produce, wirebroker refuses it",
}
# Not sent to topics that recompress each batch.
NOT_PACKED_ANEW: dict[str, str] = {
    "marked as dated by the broker": "Apache Kafka gives all its records the largest timestamp,"
    " wirebroker leaves each its own (docs/compatibility.md)",
}


class RecordSet(NamedTuple):
    shape: str  # "sound", or a name from SHAPES
    records: Expression | bytes | None
    record_count: int  # number of records, 0 if unknown


def sound(random: random.Random, *, codec: str | None = None, **header: Any) -> RecordSet:
    count = random.choice((1, 1, 2, 3, 5))
    values = [random.choice(("a", "bb", "c" * 30, "", "null")) for _ in range(count)]
    chosen: dict[str, Any] = {"key": f"k{random.randrange(4)}"}
    if codec is None:
        codec = random.choice(CODECS) if random.random() < 0.4 else "none"
    if codec != "none":
        chosen["codec"] = codec
    if "timestamp_ms" not in header and random.random() < 0.5:
        chosen["timestamp_ms"] = _TIMESTAMP_MS + random.randrange(-5, 20) * 1000
    return RecordSet("sound", call("batch", *values, **chosen, **header), count)


def recent(random: random.Random, **header: Any) -> RecordSet:
    """Return a valid batch of the last hours: producers of older ones soon expire."""
    return sound(random, timestamp_ms=_timestamp(-random.randrange(3, 9) * _HOUR_MS), **header)


def malformed(random: random.Random) -> RecordSet:
    """Return a record set of a random shape that is unusual or invalid."""
    names = [name for name in SHAPES if name not in HELD_BACK]
    name = random.choice(names)
    return RecordSet(name, SHAPES[name](random), 0)


def _damaged(*values: str, **fields: int) -> Expression:
    return call("batch", *(values or ("a", "b")), damage=fields)


def _damage(field: str, *choices: int) -> Callable[[random.Random], Expression]:
    return lambda random: _damaged(**{field: random.choice(choices)})


def _timestamp(difference_ms: int) -> Expression:
    return Expression(f"NOW + {difference_ms}") if difference_ms else _NOW


# By name: a function of the run's random generator.
SHAPES: dict[str, Callable[[random.Random], Expression | bytes | None]] = {
    "null": lambda _: None,
    "empty": lambda _: b"",
    "garbage": lambda random: random.randbytes(random.choice((1, 11, 12, 16, 17, 60, 61, 100))),
    "zeros": lambda random: bytes(random.choice((1, 12, 61, 70))),
    "cut off": lambda random: call("batch", "a", "b", cut=random.randrange(1, 70)),
    "cut off in the second": lambda random: (
        call("batch", "a") + call("batch", "b", cut=random.randrange(1, 30))
    ),
    "bytes behind its end": lambda random: (
        call("batch", "a") + random.randbytes(random.choice((1, 5, 12, 20, 61, 80)))
    ),
    "wrong checksum": _damage("crc", 0, 1),
    "checksum of the second": lambda _: call("batch", "a") + _damaged(crc=7),
    "another magic": _damage("magic", -1, 3, 4, 127),
    "old magic": _damage("magic", 0, 1),
    "message of an old format": lambda random: call("old_message", magic=random.choice((0, 1))),
    "wrong length": _damage("length", -1, 0, 1, 48, 49, 50, 60, 61, 2**31 - 1, -(2**31)),
    "wrong last offset": _damage("last_offset_delta", 0, 2, -1, 2**31 - 1),
    "no records counted": _damage("record_count", 0, -1, -(2**31)),
    "fewer records than counted": _damage("record_count", 3, 100),
    "more records than counted": lambda _: _damaged(record_count=1, last_offset_delta=0),
    "far too many counted": lambda random: _damaged(
        record_count=2**31 - 1, last_offset_delta=random.choice((2**31 - 2, 1))
    ),
    "codec the records are not packed with": _damage("attributes", 1, 2, 3, 4),
    "unknown codec": _damage("attributes", 5, 6, 7),
    "marked as dated by the broker": _damage("attributes", 8),
    "marked as transactional": _damage("attributes", 16),
    "marked as control": _damage("attributes", 32, 48),
    "with a delete horizon": _damage("attributes", 64),
    "unused bits": _damage("attributes", 128, 0x4000),
    "begins at another offset": lambda random: call(
        "batch", "a", "b", base_offset=random.choice((1, 7, 2**40))
    ),
    "negative first offset": _damage("base_offset", -1, -7),
    "some leader epoch": _damage("leader_epoch", -1, 0, 5, -7),
    "no producer but an epoch": _damage("producer_epoch", 0, 3),
    "no producer but a sequence": _damage("base_sequence", 0, 3),
    "an unknown producer": lambda random: call(
        "batch",
        "a",
        producer_id=random.choice((10**6, 10**9)),
        producer_epoch=0,
        base_sequence=random.choice((0, 3)),
    ),
    "negative producer": _damage("producer_id", -2),
    "several batches": lambda _: call("batch", "a") + call("batch", "b", "c"),
    "three batches, one packed": lambda _: (
        call("batch", "a") + call("batch", "b", codec="gzip") + call("batch", "c")
    ),
    "without keys": lambda _: call("batch", "a", "b", key=None),
    "packed without keys": lambda random: call(
        "batch", "a", "b", key=None, codec=random.choice(CODECS[1:])
    ),
    "tombstones": lambda _: call("batch", "null", "null"),
    "of no time": lambda _: call("batch", "a", timestamp_ms=-1),
    "before all time": lambda _: call("batch", "a", timestamp_ms=-1000),
    "of now": lambda _: call("batch", "a", timestamp_ms=_NOW),
    "from the future": lambda random: call(
        "batch", "a", timestamp_ms=_timestamp(random.choice((2, 30)) * _HOUR_MS)
    ),
    "a little early": lambda _: call("batch", "a", timestamp_ms=_timestamp(_HOUR_MS // 2)),
    "from the past": lambda _: call("batch", "a", timestamp_ms=_timestamp(-48 * _HOUR_MS)),
    "from the end of time": lambda _: call("batch", "a", timestamp_ms=2**62),
    "largest timestamp that no record has": _damage("max_timestamp", -1, _TIMESTAMP_MS + 10**6),
    "large": lambda random: call("batch", call("repeat", "x", random.choice((900, 3000, 70_000)))),
    "packed by zstd": lambda _: call("batch", "a", "b", codec="zstd"),
    "a marker": lambda random: call(
        "marker", producer_id=10**6, producer_epoch=0, is_transactional=random.random() < 0.5
    ),
}
