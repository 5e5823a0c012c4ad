"""Headers of requests and responses, after the int32 frame size (format: codecs/README.md).

`client_id` never has a compact length, and the ApiVersions response never has tagged fields: a peer
reads both before it knows the other side's versions (KIP-482, KIP-511).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.codecs.api_keys import API_VERSIONS, SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import skip_tagged_fields

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer

_FIXED: Final = Struct(">hhih")
_CORRELATION_ID: Final = Struct(">i")
_CORRELATION_ID_AND_NO_TAGS: Final = Struct(">ix")

_FIRST_FLEXIBLE: Final[dict[int, int]] = {
    int(key): versions.first_flexible for key, versions in SPOKEN_VERSIONS.items()
}


# Key, version, correlation id, client id, and where the body begins. A named tuple would cost 0.25
# us.
RequestHeader: TypeAlias = tuple[int, int, int, str | None, int]


def parse_request_header(frame: Buffer) -> RequestHeader:
    """Parse a request's header.

    For an unknown version of ApiVersions it stops after `client_id`: the response needs no more.

    Raises:
        MalformedFrameError: The key is unknown, or the bytes are malformed.
    """
    if len(frame) < 10:
        raise MalformedFrameError(f"a frame of {len(frame)} bytes is too short for a header")
    api_key, api_version, correlation_id, length = _FIXED.unpack_from(frame)
    first_flexible = _FIRST_FLEXIBLE.get(api_key)
    if first_flexible is None:
        raise MalformedFrameError(f"unknown api key {api_key}")
    position = 10
    client_id: str | None = None
    if length >= 0:
        position = 10 + length
        if position > len(frame):
            raise MalformedFrameError("the client id ends beyond the frame")
        try:
            client_id = str(frame[10:position], "utf-8")
        except UnicodeDecodeError:
            raise MalformedFrameError("the client id is not UTF-8") from None
    elif length != -1:
        raise MalformedFrameError("the client id has a negative length")
    if api_version >= first_flexible and (
        api_key != ApiKey.API_VERSIONS
        or api_version <= API_VERSIONS[ApiKey.API_VERSIONS].max_version
    ):
        position = skip_tagged_fields(frame, position)
    return api_key, api_version, correlation_id, client_id, position


def response_header(key: int, version: int, correlation_id: int) -> bytes:
    """Return the header of the response to a request of this key and version."""
    if key == ApiKey.API_VERSIONS or version < _FIRST_FLEXIBLE[key]:
        return _CORRELATION_ID.pack(correlation_id)
    return _CORRELATION_ID_AND_NO_TAGS.pack(correlation_id)
