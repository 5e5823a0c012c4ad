"""Chunked responses: thousands of large elements, encoded one by one in time slices.

The bytes are the same as if encoded at once: the fields before the array, its length, the elements,
no tags.
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
    """Encode a response that is the array `field` after the throttle time.

    An iterator of `elements` creates them in slices, too. `errors` counts the error codes other
    than 0. With `has_error_code` an error code, always 0, follows the throttle time.
    """
    slices = Slices(clock)
    flexible = is_flexible(key, version)
    before = _NO_THROTTLING + (_NO_ERROR if has_error_code else b"")
    # Bytes around the element in an array of one.
    head = len(before) + (1 if flexible else 4)
    tail = len(_NO_TAGS) if flexible else 0
    pieces: list[bytes] = []
    for element in elements:
        encoded = encode_response(key, version, {field: [element]}, errors)
        pieces.append(encoded[head : len(encoded) - tail])
        await slices.turn()
    count = uvarint(len(pieces) + 1) if flexible else _INT32.pack(len(pieces))
    return [before + count + b"".join(pieces) + (_NO_TAGS if flexible else b"")]
