"""Hashes of the topics of a consumer group; the only module that imports xxhash.

A group notices changes of its topics by them. They are in the log, so another coordinator, ours or
Kafka's, must compute the same: XXH3 (64 bits) over

    topic     := int8 0, uuid's int64 high, int64 low, text name, int32 partition count, partition*
    partition := int32 number, rack*
    rack      := int32 length, text
    text      := int16 UTF-16 unit*, int32 length
    group     := int64 hash of a topic *       sorted by the topics' names

Integers are little-endian, lengths in UTF-16 units. Racks of a partition are sorted; each replica
contributes one, if its broker has one.

Source: Kafka's coordinator.group.Utils and hash4j's HashStream64; KIP-1101.
"""

from __future__ import annotations

from struct import Struct, pack
from typing import TYPE_CHECKING, Final

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MAGIC: Final = b"\0"
_INT32: Final = Struct("<i")
_HALVES: Final = Struct(">qq")
_HALVES_IN_HASH: Final = Struct("<qq")


def topic_hash(topic_id: bytes, name: str, racks: Sequence[Sequence[str]]) -> int:
    """Return the hash of a topic, a signed int64; Kafka's for a topic that does not exist is 0.

    Args:
        topic_id: 16 bytes.
        name: The topic's name.
        racks: The racks of each partition's replicas, in any order.
    """
    pieces = [
        _MAGIC,
        _HALVES_IN_HASH.pack(*_HALVES.unpack(topic_id)),
        _text(name),
        _INT32.pack(len(racks)),
    ]
    # Many partitions have replicas in the same racks.
    encoded: dict[tuple[str, ...], bytes] = {(): b""}
    for number, names in enumerate(racks):
        key = tuple(names)
        of_racks = encoded.get(key)
        if of_racks is None:
            of_racks = encoded[key] = _racks(key)
        pieces += _INT32.pack(number), of_racks
    return _hash(pieces)


def group_hash(hashes: Mapping[str, int]) -> int:
    """Return the hash of a group's topics, a signed int64, from their hashes by name."""
    if not hashes:
        return 0
    # Both orders are the same for names of existing topics; a group may have many thousands.
    is_plain = all(map(str.isascii, hashes))
    names = sorted(hashes) if is_plain else sorted(hashes, key=_java_order)
    return _hash([pack(f"<{len(names)}q", *map(hashes.__getitem__, names))])


def _racks(names: Iterable[str]) -> bytes:
    texts = [_text(name) for name in sorted(names, key=_java_order)]
    # A text ends with its length.
    return b"".join(text[-_INT32.size :] + text for text in texts)


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT32.pack(len(units) // 2)


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _hash(pieces: Iterable[bytes]) -> int:
    value = xxh3_64_intdigest(b"".join(pieces))
    return value - (1 << 64) if value >> 63 else value
