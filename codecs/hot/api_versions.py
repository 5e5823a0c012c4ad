"""Hand-written codec of ApiVersions (key 18), versions 0 to 5: a client's first request.

    request   (v3) string client_software_name, (v3) string client_software_version,
              (v5) string? cluster_id, (v5) int32 node_id: the cluster and node the client expects
    response  int16 error_code, [int16 api_key, int16 min_version, int16 max_version],
              (v1) int32 throttle_time_ms,
              (v3) tag 0: [string name, int16 min_version, int16 max_version]  supported features
              (v3) tag 1: int64 finalized_features_epoch
              (v3) tag 2: [string name, int16 max level, int16 min level]      finalized features
              (v3) tag 3: bool zk_migration_ready

Version 3 is the first flexible one. A request of an unknown version gets a response of version 0
with UNSUPPORTED_VERSION and the known keys. Up to version 3 the response omits supported features
with minimum level 0, which older Java clients refuse (KAFKA-17011).

Source: KIP-35, KIP-511, KIP-584, KIP-1242.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.primitives import (
    compact_string,
    read_compact_nullable_string,
    read_compact_string,
    skip_tagged_fields,
    uvarint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_FLEXIBLE: Final = 3
_FIRST_WITH_TARGET: Final = 5
ANY_NODE: Final = -1
NO_FEATURES_EPOCH: Final = -1

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_KEY: Final = Struct(">hhh")
_KEY_AND_TAGS: Final = Struct(">hhhx")
_LEVELS_AND_TAGS: Final = Struct(">hhx")


class ApiVersionsRequest(NamedTuple):
    """A parsed request; the software fields are empty before version 3."""

    client_software_name: str = ""
    client_software_version: str = ""
    # The defaults if the client names none.
    cluster_id: str | None = None
    node_id: int = ANY_NODE


def parse_api_versions(frame: memoryview, position: int, version: int) -> ApiVersionsRequest:
    """Parse a request's body.

    Raises:
        MalformedFrameError.
    """
    request = ApiVersionsRequest()
    if version >= FIRST_FLEXIBLE:
        name, position = read_compact_string(frame, position)
        software_version, position = read_compact_string(frame, position)
        cluster_id: str | None = None
        node_id = ANY_NODE
        if version >= _FIRST_WITH_TARGET:
            cluster_id, position = read_compact_nullable_string(frame, position)
            if position + _INT32.size > len(frame):
                raise MalformedFrameError("the ApiVersions request ends before its node id")
            (node_id,) = _INT32.unpack_from(frame, position)
            position += _INT32.size
        position = skip_tagged_fields(frame, position)
        request = ApiVersionsRequest(name, software_version, cluster_id, node_id)
    # Like Kafka, ignore bytes after the request.
    if position > len(frame):
        raise MalformedFrameError("the ApiVersions request ends beyond its frame")
    return request


def encode_api_versions(
    version: int,
    *,
    api_keys: Sequence[tuple[int, int, int]],
    error_code: int = 0,
    throttle_time_ms: int = 0,
    supported_features: Sequence[tuple[str, int, int]] = (),
    finalized_features: Sequence[tuple[str, int]] = (),
    finalized_features_epoch: int = NO_FEATURES_EPOCH,
    zk_migration_ready: bool = False,
) -> bytes:
    """Encode a response's body.

    `version` is 0 if the request's is unknown. `api_keys` has (key, lowest version, highest
    version), `supported_features` (name, lowest level, highest level), `finalized_features` (name,
    level).
    """
    flexible = version >= FIRST_FLEXIBLE
    pieces = [_INT16.pack(error_code)]
    pieces.append(uvarint(len(api_keys) + 1) if flexible else _INT32.pack(len(api_keys)))
    layout = _KEY_AND_TAGS if flexible else _KEY
    pieces += [layout.pack(*row) for row in api_keys]
    if version >= 1:
        pieces.append(_INT32.pack(throttle_time_ms))
    if flexible:
        tags: list[tuple[int, bytes]] = []
        supported = [row for row in supported_features if version >= 4 or row[1] > 0]
        if supported:
            tags.append((0, _encode_features(supported)))
        if finalized_features_epoch != NO_FEATURES_EPOCH:
            tags.append((1, _INT64.pack(finalized_features_epoch)))
        # Level 0 means off.
        finalized = [(name, level, level) for name, level in finalized_features if level != 0]
        if finalized:
            tags.append((2, _encode_features(finalized)))
        if zk_migration_ready:
            tags.append((3, b"\x01"))
        pieces.append(uvarint(len(tags)))
        for tag, content in tags:
            pieces += (uvarint(tag), uvarint(len(content)), content)
    return b"".join(pieces)


def _encode_features(features: Sequence[tuple[str, int, int]]) -> bytes:
    pieces = [uvarint(len(features) + 1)]
    for name, first_level, second_level in features:
        pieces += (compact_string(name), _LEVELS_AND_TAGS.pack(first_level, second_level))
    return b"".join(pieces)
