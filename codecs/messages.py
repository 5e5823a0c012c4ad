"""The generic codec: bodies of requests and responses as values (see Message).

    body = decode_request(ApiKey.CREATE_TOPICS, 7, frame, position)
    body.topics[0].name
    encode_response(ApiKey.CREATE_TOPICS, 7, {"topics": [{"name": "t", "error_code": 36}]})

Keys that a mapping lacks get their defaults.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.message import MAX_ELEMENTS, Message, load_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.values import Struct


def decode_request(
    key: ApiKey,
    version: int,
    frame: Buffer,
    position: int = 0,
    *,
    max_elements: int = MAX_ELEMENTS,
) -> Any:
    """Decode a request's body, which begins at `position` and ends with the frame.

    The result does not refer to it.

    Raises:
        MalformedFrameError.
    """
    return request_message(key).decode(version, frame, position, max_elements=max_elements)


def encode_request(key: ApiKey, version: int, value: Mapping[str, Any] | Struct) -> bytes:
    """Encode a request's body."""
    return request_message(key).encode(version, value)


def decode_response(
    key: ApiKey,
    version: int,
    view: Buffer,
    position: int = 0,
    *,
    max_elements: int = MAX_ELEMENTS,
    keep_views: bool = False,
) -> Any:
    """Decode a response's body, which begins at `position` and ends with the view.

    With `keep_views` record batches are views into `view`.

    Raises:
        MalformedFrameError.
    """
    return response_message(key).decode(
        version, view, position, max_elements=max_elements, keep_views=keep_views
    )


def encode_response(
    key: ApiKey,
    version: int,
    value: Mapping[str, Any] | Struct,
    errors: dict[int, int] | None = None,
) -> bytes:
    """Encode a response's body.

    `errors` counts its error codes other than 0.

    Raises:
        AssertionError: The value is not such a response.
    """
    return response_message(key).encode(version, value, errors)


@cache
def request_message(key: ApiKey) -> Message:
    """Return the codec of a key's request.

    Raises:
        LookupError: The key has no definition.
    """
    return load_message(f"{key.name.lower()}_request")


@cache
def response_message(key: ApiKey) -> Message:
    """Return the codec of a key's response; raise as `request_message` does."""
    return load_message(f"{key.name.lower()}_response")
