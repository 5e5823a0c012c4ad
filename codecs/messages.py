"""Requests and responses as values: the generic codec.

    body = decode_request(ApiKey.CREATE_TOPICS, 7, frame, position)
    body.topics[0].name
    encode_response(ApiKey.CREATE_TOPICS, 7, {"topics": [{"name": "t", "error_code": 36}]})

Bodies only; headers are in frames.py. The codecs are modules made by the build (message.py), from
the definitions that kafka-python carries and from tables of our own (compiling/messages).

Produce, Fetch, Metadata and ApiVersions, the hot ones, have hand-written modules of their own.
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

    Args:
        key: The request's API key.
        version: Its version; the caller has checked that it is one we advertise.
        frame: The request without its length; nothing of it is kept.
        position: Where the body begins.
        max_elements: Bound on the elements of all its arrays together.

    Raises:
        MalformedFrameError: The bytes are not such a request.
    """
    return request_message(key).decode(version, frame, position, max_elements=max_elements)


def encode_request(key: ApiKey, version: int, value: Mapping[str, Any] | Struct) -> bytes:
    """Encode a request's body; keys that are missing in a mapping get their defaults."""
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

    With `keep_views` record batches are views into `view`, else all that it holds is copied.

    Raises:
        MalformedFrameError: The bytes are not such a response.
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
    """Encode a response's body; keys that are missing in a mapping get their defaults.

    Args:
        key: The request's API key.
        version: Its version.
        value: The response.
        errors: Counts the error codes other than 0 that it has, by code.

    Raises:
        AssertionError: The value is no such response (our fault, see Message.encode).
    """
    return response_message(key).encode(version, value, errors)


@cache
def request_message(key: ApiKey) -> Message:
    """Return the codec of a key's request.

    Raises:
        LookupError: There is no definition for the key.
    """
    return load_message(f"{key.name.lower()}_request")


@cache
def response_message(key: ApiKey) -> Message:
    """Return the codec of a key's response; raises as `request_message` does."""
    return load_message(f"{key.name.lower()}_response")
