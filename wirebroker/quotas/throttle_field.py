"""Insertion of throttle_time_ms into encoded responses.

In most responses it is the first field or has a fixed position. In Produce and ApiVersions it
follows arrays; these short responses are decoded and encoded again.

Source: the message definitions.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.frames import response_header
from wirebroker.codecs.messages import decode_response, encode_response, response_message
from wirebroker.storage.files import FileSlice

if TYPE_CHECKING:
    from wirebroker.request.request import Piece

_INT32: Final = Struct(">i")
_LENGTH_BYTES: Final = 4
_FIELD: Final = "throttle_time_ms"
_UNLIKELY: Final = 0x71829304
_ELSEWHERE: Final = frozenset({ApiKey.PRODUCE, ApiKey.API_VERSIONS})


def write_throttle_time(answer: list[Piece], key: ApiKey, version: int, throttle_ms: int) -> None:
    """Write the throttle time into a response, unless that version has no such field."""
    header_bytes = _LENGTH_BYTES + len(response_header(key, version, 0))
    if key in _ELSEWHERE:
        answer[:] = [_reencoded(_bytes_of(answer), key, version, header_bytes, throttle_ms)]
        return
    position = _position(key, version)
    if position is not None:
        begin = header_bytes + position
        # The head of a long response is a separate piece.
        count = 1 if len(_bytes_of(answer[:1])) >= begin + _INT32.size else 2
        changed = bytearray(_bytes_of(answer[:count]))
        _INT32.pack_into(changed, begin, throttle_ms)
        answer[:count] = [bytes(changed)]


def _bytes_of(pieces: list[Piece]) -> bytes:
    parts: list[bytes] = []
    for piece in pieces:
        assert not isinstance(piece, FileSlice), "fields are bytes"
        parts.append(bytes(piece))
    return b"".join(parts)


def _reencoded(
    answer: bytes, key: ApiKey, version: int, header_bytes: int, throttle_ms: int
) -> bytes:
    body = decode_response(key, version, answer, header_bytes)
    body.throttle_time_ms = throttle_ms
    content = answer[_LENGTH_BYTES:header_bytes] + encode_response(key, version, body)
    return _INT32.pack(len(content)) + content


@cache
def _position(key: ApiKey, version: int) -> int | None:
    if _FIELD not in response_message(key).struct_class.FIELD_NAMES:
        return None
    position = encode_response(key, version, {_FIELD: _UNLIKELY}).find(_INT32.pack(_UNLIKELY))
    return None if position < 0 else position
