"""Headers as whoever asks writes and reads them; frames.py is the side that answers.

    head = request_header(ApiKey.FETCH, 17, 42, b"broker-1")      then the body; no length before it
    correlation_id, position = parse_response_header(ApiKey.FETCH, 17, frame)

Source: KIP-482 (flexible headers), KIP-511 (ApiVersions is answered without tagged fields).
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
    """Return the header of a request.

    Args:
        key: What is asked for.
        version: One of those that we speak.
        correlation_id: 0 to 2**31 - 1; the answer has the same.
        client_id: UTF-8 of at most 32,767 bytes; classic length in flexible versions as well.
    """
    fixed = _FIXED.pack(key, version, correlation_id, len(client_id))
    if version >= SPOKEN_VERSIONS[key].first_flexible:
        return b"%b%b\x00" % (fixed, client_id)
    return fixed + client_id


def parse_response_header(key: ApiKey, version: int, frame: Buffer) -> tuple[int, int]:
    """Read the header of the answer to a request of this key and version.

    Returns:
        The correlation id, and where the body begins.

    Raises:
        MalformedFrameError: The bytes are no such header.
    """
    if len(frame) < 4:
        raise MalformedFrameError(f"an answer of {len(frame)} bytes has no correlation id")
    (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
    if key == ApiKey.API_VERSIONS or version < SPOKEN_VERSIONS[key].first_flexible:
        return correlation_id, 4
    return correlation_id, skip_tagged_fields(frame, 4)
