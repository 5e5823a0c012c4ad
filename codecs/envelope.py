"""The content of an Envelope: a client's request, with its user and address (KIP-590).

    request_data         a request's header and body, in the client's version
    request_principal    int16 version 0, then flexible: type, name, whether a token proved it
    client_host_address  4 or 16 bytes
    response_data        the response's header and body, in the same version

Malformed bytes raise MalformedFrameError.

Source: Kafka's DefaultPrincipalData, ForwardingManager and EnvelopeUtils.
"""

from __future__ import annotations

import ipaddress
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import read_uvarint, skip_tagged_fields, uvarint

if TYPE_CHECKING:
    from wirebroker.codecs.primitives import Buffer

_FIXED: Final = Struct(">hhih")
_CORRELATION_ID: Final = Struct(">i")
_PRINCIPAL_VERSION: Final = bytes(2)


class Principal(NamedTuple):
    """The authenticated user of a client."""

    type: str = "User"
    name: str = "ANONYMOUS"
    is_by_token: bool = False


class Header(NamedTuple):
    """The header of a request, and the position of its body."""

    key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    position: int


def parse_header(frame: Buffer) -> Header:
    """Parse the header of a request to a controller; ApiVersions may have any version.

    Raises:
        MalformedFrameError: Also for an unknown key or version.
    """
    if len(frame) < _FIXED.size:
        raise MalformedFrameError(f"a frame of {len(frame)} bytes is too short for a header")
    number, version, correlation_id, length = _FIXED.unpack_from(frame)
    if number not in ApiKey._value2member_map_ or ApiKey(number) not in SPOKEN_VERSIONS:
        raise MalformedFrameError(f"unknown api key {number}")
    key = ApiKey(number)
    spoken = SPOKEN_VERSIONS[key]
    is_known = spoken.min_version <= version <= spoken.max_version
    if not is_known and key is not ApiKey.API_VERSIONS:
        raise MalformedFrameError(f"{key.name} has no version {version}")
    position = _FIXED.size + max(0, length)
    if length < -1 or position > len(frame):
        raise MalformedFrameError("the client id ends beyond the frame")
    try:
        client_id = None if length < 0 else str(frame[_FIXED.size : position], "utf-8")
    except UnicodeDecodeError:
        raise MalformedFrameError("the client id is not UTF-8") from None
    if is_known and version >= spoken.first_flexible:
        position = skip_tagged_fields(frame, position)
    return Header(key, version, correlation_id, client_id, position)


def answer_header(key: ApiKey, version: int, correlation_id: int) -> bytes:
    """Return the header of the response to a request of this key and version."""
    fixed = _CORRELATION_ID.pack(correlation_id)
    if key is ApiKey.API_VERSIONS or version < SPOKEN_VERSIONS[key].first_flexible:
        return fixed
    return fixed + b"\x00"


def encode_principal(principal: Principal) -> bytes:
    """Encode a principal for an Envelope."""
    kind, name = principal.type.encode(), principal.name.encode()
    flag = b"\x01" if principal.is_by_token else b"\x00"
    return b"".join(
        (_PRINCIPAL_VERSION, uvarint(len(kind) + 1), kind, uvarint(len(name) + 1), name, flag)
    ) + bytes(1)


def decode_principal(data: Buffer) -> Principal:
    """Decode a principal."""
    if bytes(data[:2]) != _PRINCIPAL_VERSION:
        raise MalformedFrameError("the principal has an unknown version")
    kind, position = _text(data, 2)
    name, position = _text(data, position)
    if position >= len(data):
        raise MalformedFrameError("the principal ends too soon")
    is_by_token = bool(data[position])
    if skip_tagged_fields(data, position + 1) != len(data):
        raise MalformedFrameError("unexpected bytes after the principal")
    return Principal(kind, name, is_by_token)


def encode_host(host: str) -> bytes:
    """Encode an address; a text that is not an address becomes 0.0.0.0."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return bytes(4)


def decode_host(data: Buffer) -> str:
    """Decode an address."""
    try:
        return str(ipaddress.ip_address(bytes(data)))
    except ValueError:
        raise MalformedFrameError(f"an address of {len(data)} bytes") from None


def _text(data: Buffer, position: int) -> tuple[str, int]:
    if position >= len(data):
        raise MalformedFrameError("the principal ends too soon")
    length, position = read_uvarint(data, position)
    end = position + length - 1
    if length < 1 or end > len(data):
        raise MalformedFrameError("a string of the principal ends beyond it")
    try:
        return str(data[position:end], "utf-8"), end
    except UnicodeDecodeError:
        raise MalformedFrameError("a string of the principal is not UTF-8") from None
