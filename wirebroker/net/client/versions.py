"""Which versions a peer and we both speak: ApiVersions at the beginning of each connection.

Who does not know our version of ApiVersions answers in version 0 and says which it knows (KIP-511);
then it is asked again.
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

_OURS: Final = SPOKEN_VERSIONS[ApiKey.API_VERSIONS].max_version
_SOFTWARE: Final = {"client_software_name": "wirebroker", "client_software_version": __version__}


class PeerVersions:
    """What a peer has said in ApiVersions.

    Attributes:
        answer: The decoded answer: api_keys, supported_features, finalized_features,
            finalized_features_epoch.
    """

    __slots__ = ("_ranges", "answer")

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self._ranges: Mapping[int, tuple[int, int]] = {
            row.api_key: (row.min_version, row.max_version) for row in answer.api_keys
        }

    def highest(self, key: ApiKey, at_most: int | None = None) -> int | None:
        """Return the highest version that both speak, not above `at_most`; None: there is none."""
        theirs = self._ranges.get(int(key))
        if theirs is None:
            return None
        ours = SPOKEN_VERSIONS[key]
        version = min(theirs[1], ours.max_version)
        if at_most is not None:
            version = min(version, at_most)
        return version if version >= max(theirs[0], ours.min_version) else None


async def ask_versions(
    exchange: Callable[[ApiKey, int, bytes], Awaitable[memoryview]],
) -> PeerVersions:
    """Ask a peer for its versions.

    Args:
        exchange: Sends the body of a request in a version; returns the body of its answer.

    Raises:
        KafkaError: The peer answers with an error.
        MalformedFrameError: The answer is none.
    """
    version = _OURS
    body = await exchange(ApiKey.API_VERSIONS, version, _request(version))
    if int.from_bytes(body[:2]) == ErrorCode.UNSUPPORTED_VERSION:
        told = PeerVersions(decode_response(ApiKey.API_VERSIONS, 0, body))
        version = told.highest(ApiKey.API_VERSIONS) or 0
        body = await exchange(ApiKey.API_VERSIONS, version, _request(version))
    answer = decode_response(ApiKey.API_VERSIONS, version, body)
    if answer.error_code:
        what = f"ApiVersions is answered with {error_name(answer.error_code)}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what)
    return PeerVersions(answer)


def _request(version: int) -> bytes:
    return encode_request(ApiKey.API_VERSIONS, version, _SOFTWARE if version >= 3 else {})
