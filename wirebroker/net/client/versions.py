"""Version negotiation by ApiVersions at the beginning of each connection.

A peer that does not support the sent version of ApiVersions responds in version 0 with its range
(KIP-511); the request is then repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker import __version__
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import decode_response, encode_request
from wirebroker.net.client.errors import error_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

_REQUEST_VERSION: Final = SPOKEN_VERSIONS[ApiKey.API_VERSIONS].max_version
_SOFTWARE: Final = {"client_software_name": "wirebroker", "client_software_version": __version__}


class PeerVersions:
    """A peer's decoded response to ApiVersions."""

    __slots__ = ("_ranges", "answer")

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self._ranges: Mapping[int, tuple[int, int]] = {
            row.api_key: (row.min_version, row.max_version) for row in answer.api_keys
        }

    def highest(self, key: ApiKey, at_most: int | None = None) -> int | None:
        """Return the highest common version, not above `at_most`, or None."""
        peer_range = self._ranges.get(int(key))
        if peer_range is None:
            return None
        supported = SPOKEN_VERSIONS[key]
        version = min(peer_range[1], supported.max_version)
        if at_most is not None:
            version = min(version, at_most)
        return version if version >= max(peer_range[0], supported.min_version) else None


async def request_versions(
    exchange: Callable[[ApiKey, int, bytes], Awaitable[memoryview]],
) -> PeerVersions:
    """Request a peer's versions; `exchange` sends a body and returns the response's.

    Raises:
        KafkaError: The peer returns an error.
        MalformedFrameError: The response is malformed.
    """
    version = _REQUEST_VERSION
    body = await exchange(ApiKey.API_VERSIONS, version, _request(version))
    if int.from_bytes(body[:2]) == ErrorCode.UNSUPPORTED_VERSION:
        peer_versions = PeerVersions(decode_response(ApiKey.API_VERSIONS, 0, body))
        version = peer_versions.highest(ApiKey.API_VERSIONS) or 0
        body = await exchange(ApiKey.API_VERSIONS, version, _request(version))
    answer = decode_response(ApiKey.API_VERSIONS, version, body)
    if answer.error_code:
        reason = f"ApiVersions failed with {error_name(answer.error_code)}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
    return PeerVersions(answer)


def _request(version: int) -> bytes:
    return encode_request(ApiKey.API_VERSIONS, version, _SOFTWARE if version >= 3 else {})
