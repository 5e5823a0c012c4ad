"""The records of `__transaction_state`: the state of transactional ids, in versions 0 and 1.

    key    := int16 kind (0), string transactional id
    value  := int16 version, body           a null value is a tombstone

Version 1 adds, as tagged fields, the previous and the next producer id and the client's
transaction.version.

Source: Kafka's TransactionLog; KIP-98, KIP-890.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

from wirebroker.codecs.coordinator_records import decode_versioned, encode_versioned
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.message import Message, load_message

TRANSACTION_KIND: Final = 0
# Written while transaction.version is 0.
LEGACY_VALUE_VERSION: Final = 0
VALUE_VERSION: Final = 1

_KEY_HEAD: Final = Struct(">hh")


def transaction_key(transactional_id: str) -> bytes:
    """Return the key of a transactional id's record."""
    encoded = transactional_id.encode()
    return _KEY_HEAD.pack(TRANSACTION_KIND, len(encoded)) + encoded


def decode_transaction_key(key: bytes) -> str | None:
    """Return the transactional id of a key; None if the record is of another kind.

    Raises:
        MalformedFrameError.
    """
    try:
        kind, length = _KEY_HEAD.unpack_from(key)
        if kind != TRANSACTION_KIND:
            return None
        if length != len(key) - _KEY_HEAD.size:
            raise MalformedFrameError("a transaction record's key has the wrong length")
        return key[_KEY_HEAD.size :].decode()
    except (struct_error, UnicodeDecodeError) as error:
        raise MalformedFrameError(f"a transaction record's key: {error}") from None


def encode_transaction_value(version: int, /, **fields: Any) -> bytes:
    """Encode a value; fields as in compiling/tables/transaction_log.txt."""
    return encode_versioned(transaction_message(), version, fields)


def decode_transaction_value(value: bytes) -> Any:
    """Decode a value of any version.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
        MalformedFrameError.
    """
    return decode_versioned(transaction_message(), value)


@cache
def transaction_message() -> Message:
    """Return the value's codec."""
    return load_message("transaction_log_value")
