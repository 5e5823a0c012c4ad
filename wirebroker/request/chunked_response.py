"""Chunked responses: thousands of large elements, encoded one by one in time slices.

Descriptions of 5,000 topics with some 33 configs each take half a second. The bytes are the same as
if encoded at once: the fields before the array, its length, the elements, no tags.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey, is_flexible
from wirebroker.codecs.messages import encode_response
from wirebroker.codecs.primitives import uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.request.request import Reply

_INT32: Final = Struct(">i")
_NO_THROTTLING: Final = _INT32.pack(0)
_NO_ERROR: Final = bytes(2)
_NO_TAGS: Final = b"\x00"


async def encode_chunked(
    key: ApiKey,
    version: int,
    field: str,
    elements: Iterable[Mapping[str, Any]],
    clock: Clock,
    *,
    errors: dict[int, int] | None = None,
    has_error_code: bool = False,
) -> Reply:
    """Encode a response that is an array after the throttle time.

    Args:
        key: The API key.
        version: The request's version.
        field: The array's name.
        elements: An iterator creates them in slices, too.
        clock: Measures the slices.
        errors: Counts the error codes other than 0.
        has_error_code: Whether an error code, always 0, follows the throttle time.
    """
    slices = Slices(clock)
    flexible = is_flexible(key, version)
    before = _NO_THROTTLING + (_NO_ERROR if has_error_code else b"")
    # Lengths of what surrounds the element in an array of one.
    head = len(before) + (1 if flexible else 4)
    tail = len(_NO_TAGS) if flexible else 0
    pieces: list[bytes] = []
    for element in elements:
        encoded = encode_response(key, version, {field: [element]}, errors)
        pieces.append(encoded[head : len(encoded) - tail])
        await slices.turn()
    count = uvarint(len(pieces) + 1) if flexible else _INT32.pack(len(pieces))
    return [before + count + b"".join(pieces) + (_NO_TAGS if flexible else b"")]
