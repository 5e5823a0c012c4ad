"""The value of ShareGroupStatePartitionMetadata, which may have thousands of topics.

    version (int16)
    initializing, initialized topics   each: topic id, name, partitions (int32), tagged fields
    deleting topics                    each: topic id, name, tagged fields
    tagged fields

The generic codec decodes it.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.primitives import compact_string, uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    # Names and partitions by topic id.
    Topics = Mapping[bytes, tuple[str, frozenset[int]]]

_VERSION: Final = b"\0\0"
_NO_TAGS: Final = b"\0"


def encode_state_topics(
    initializing: Topics, initialized: Topics, deleting: Mapping[bytes, str]
) -> bytes:
    """Encode a value; partitions are sorted, topics if the mappings are."""
    parts = [_VERSION]
    # Most topics have the same partitions.
    encoded: dict[frozenset[int], bytes] = {}
    for topics in (initializing, initialized):
        parts.append(uvarint(len(topics) + 1))
        for topic_id, (name, partitions) in topics.items():
            end = encoded.get(partitions)
            if end is None:
                end = encoded[partitions] = _encode_partitions(partitions)
            parts += topic_id, compact_string(name), end
    parts.append(uvarint(len(deleting) + 1))
    for topic_id, name in deleting.items():
        parts += topic_id, compact_string(name), _NO_TAGS
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _encode_partitions(partitions: Iterable[int]) -> bytes:
    indexes = sorted(partitions)
    return uvarint(len(indexes) + 1) + pack(f">{len(indexes)}i", *indexes) + _NO_TAGS
