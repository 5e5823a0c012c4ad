"""Values with thousands of names: ConsumerGroupMemberMetadata, ConsumerGroupRegularExpression.

    version (int16), four strings that may be null: instance id, rack, client id, client host
    names of topics, each with its length; other fields

    version (int16), names of topics; other fields

The names are encoded together, the other fields by the generic codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.coordinator_records import encode_versioned
from wirebroker.codecs.group_records import GroupRecordKind, group_record_message
from wirebroker.codecs.primitives import compact_nullable_string, compact_string, uvarint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Steps

_VERSION: Final = 0
_VERSION_BYTES: Final = 2
_FIELDS_BEFORE_NAMES: Final = ("instance_id", "rack_id", "client_id", "client_host")
# Longer names have lengths of two bytes.
_MOST_IN_ONE_BYTE: Final = 126
# Encoding these takes one millisecond.
_NAMES_PER_STEP: Final = 5_000


def encode_subscription(
    names: Sequence[str], /, encoded_names: bytes | None = None, **fields: Any
) -> bytes:
    """Encode a value with its version; `fields` are as in compiling/tables, except the names.

    `encoded_names` is the result of `encoded_names_in_steps` if the names are encoded already.
    """
    message = group_record_message(GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA)
    others = encode_versioned(message, _VERSION, {**fields, "subscribed_topic_names": ()})
    before = map(compact_nullable_string, map(fields.get, _FIELDS_BEFORE_NAMES))
    position = _VERSION_BYTES + sum(map(len, before))
    end = position + len(uvarint(1))  # of the empty list
    encoded = _encoded_names(names) if encoded_names is None else encoded_names
    return b"".join((others[:position], encoded, others[end:]))


def encode_resolved(encoded_names: bytes, /, **fields: Any) -> bytes:
    """Encode the value of ConsumerGroupRegularExpression; `encoded_names` are its topics."""
    message = group_record_message(GroupRecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION)
    others = encode_versioned(message, _VERSION, {**fields, "topics": ()})
    end = _VERSION_BYTES + len(uvarint(1))  # of the empty list
    return b"".join((others[:_VERSION_BYTES], encoded_names, others[end:]))


def _encoded_names(names: Sequence[str]) -> bytes:
    return uvarint(len(names) + 1) + (_encoded_part(names) if names else b"")


def encoded_names_in_steps(names: Sequence[str]) -> Steps[bytes]:
    """Encode a compact array of strings."""
    parts = [uvarint(len(names) + 1)]
    for start in range(0, len(names), _NAMES_PER_STEP):
        if start:
            yield
        parts.append(_encoded_part(names[start : start + _NAMES_PER_STEP]))
    return b"".join(parts)


def _encoded_part(names: Sequence[str]) -> bytes:
    lengths = list(map(len, names))
    if max(lengths) <= _MOST_IN_ONE_BYTE and all(map(str.isascii, names)):
        heads = map(chr, map((1).__add__, lengths))
        return "".join(map(str.__add__, heads, names)).encode("ascii")
    return b"".join(map(compact_string, names))
