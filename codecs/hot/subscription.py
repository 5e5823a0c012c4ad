"""The value of ConsumerGroupMemberMetadata, for members with thousands of topics.

    version (int16), four strings that may be null: instance id, rack, client id, client host
    names of topics, each with its length; other fields

The names are encoded together, the other fields by the generic codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.coordinator_records import encode_versioned
from wirebroker.codecs.group_records import GroupRecordKind, group_record_message
from wirebroker.codecs.primitives import compact_nullable_string, compact_string, uvarint

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION: Final = 0
_VERSION_BYTES: Final = 2
_FIELDS_BEFORE_NAMES: Final = ("instance_id", "rack_id", "client_id", "client_host")
# Longer names have lengths of two bytes.
_MOST_IN_ONE_BYTE: Final = 126


def encode_subscription(names: Sequence[str], /, **fields: Any) -> bytes:
    """Encode a value with its version; fields as in compiling/tables, but for the names."""
    message = group_record_message(GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA)
    others = encode_versioned(message, _VERSION, {**fields, "subscribed_topic_names": ()})
    before = map(compact_nullable_string, map(fields.get, _FIELDS_BEFORE_NAMES))
    position = _VERSION_BYTES + sum(map(len, before))
    end = position + len(uvarint(1))  # of the empty list
    return b"".join((others[:position], _encoded_names(names), others[end:]))


def _encoded_names(names: Sequence[str]) -> bytes:
    """Encode a compact array of strings."""
    lengths = list(map(len, names))
    head = uvarint(len(names) + 1)
    if max(lengths, default=0) <= _MOST_IN_ONE_BYTE and all(map(str.isascii, names)):
        heads = map(chr, map((1).__add__, lengths))
        return head + "".join(map(str.__add__, heads, names)).encode("ascii")
    return head + b"".join(map(compact_string, names))
