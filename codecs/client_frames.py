"""The client's side of headers: write requests, read responses (frames.py is the server's side).

Source: KIP-482, KIP-511.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import skip_tagged_fields

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer

_FIXED: Final = Struct(">hhih")
_CORRELATION_ID: Final = Struct(">i")


def request_header(key: ApiKey, version: int, correlation_id: int, client_id: bytes) -> bytes:
    """Return the header of a request, whose version must be in SPOKEN_VERSIONS."""
    fixed = _FIXED.pack(key, version, correlation_id, len(client_id))
    if version >= SPOKEN_VERSIONS[key].first_flexible:
        return b"%b%b\x00" % (fixed, client_id)
    return fixed + client_id


def parse_response_header(key: ApiKey, version: int, frame: Buffer) -> tuple[int, int]:
    """Return the correlation id of a response, and where its body begins.

    Raises:
        MalformedFrameError.
    """
    if len(frame) < 4:
        raise MalformedFrameError(f"a response of {len(frame)} bytes has no correlation id")
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
    if key == ApiKey.API_VERSIONS or version < SPOKEN_VERSIONS[key].first_flexible:
        return correlation_id, 4
    return correlation_id, skip_tagged_fields(frame, 4)
