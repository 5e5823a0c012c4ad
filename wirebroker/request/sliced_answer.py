"""Answers with thousands of large elements, encoded one by one in slices of the loop's time.

Topics are described with some 33 configs each, so an answer about 5,000 topics takes half a second
to encode. It is the same bytes as if it were encoded at once: the fields before the array (the
throttle time, of some answers an error code), its length, the elements, no tags.
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


async def encode_sliced_answer(
    key: ApiKey,
    version: int,
    field: str,
    elements: Iterable[Mapping[str, Any]],
    clock: Clock,
    *,
    errors: dict[int, int] | None = None,
    has_error_code: bool = False,
) -> Reply:
    """Encode an answer that is an array after the throttle time.

    Args:
        key: The API.
        version: The request's version.
        field: The array's name.
        elements: Made while they are encoded, so that making them is sliced too.
        clock: Measures the slices.
        errors: Counts the error codes other than 0, by code.
        has_error_code: Whether the throttle time is followed by an error code; it is none.
    """
    slices = Slices(clock)
    flexible = is_flexible(key, version)
    before = _NO_THROTTLING + (_NO_ERROR if has_error_code else b"")
    # What stands before an array of one element; at the end the tags.
    head = len(before) + (1 if flexible else 4)
    tail = len(_NO_TAGS) if flexible else 0
    pieces: list[bytes] = []
    for element in elements:
        encoded = encode_response(key, version, {field: [element]}, errors)
        pieces.append(encoded[head : len(encoded) - tail])
        await slices.turn()
    count = uvarint(len(pieces) + 1) if flexible else _INT32.pack(len(pieces))
    return [before + count + b"".join(pieces) + (_NO_TAGS if flexible else b"")]
