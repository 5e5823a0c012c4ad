"""Requests and responses as values: the generic codec, and the only door to kafka-python.

    body = decode_request(ApiKey.CREATE_TOPICS, 7, frame, position)
    body.topics[0].name
    encode_response(ApiKey.CREATE_TOPICS, 7, {"topics": [{"name": "t", "error_code": 36}]})

Bodies only; headers are in frames.py. The definitions are the JSON files that kafka-python carries
as data. They are read without importing the package, which would cost 0.1 s and 10 MB, and compiled
by our own generator (codegen.py), which refuses what kafka-python's engine lets pass.

Produce, Fetch, Metadata and ApiVersions, the hot ones, have hand-written modules of their own.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from wirebroker.codecs.codegen import MAX_ELEMENTS, Message
from wirebroker.codecs.schema import parse_json_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.values import Struct

_RESOURCES = ("protocol", "schemas", "resources")


class _DataLoader(Protocol):
    """What a package's loader offers whether it is a directory or a zip file."""

    def get_data(self, path: str) -> bytes: ...


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
) -> Any:
    """Decode a response's body, which begins at `position` and ends with the view.

    Raises:
        MalformedFrameError: The bytes are not such a response.
    """
    return response_message(key).decode(version, view, position, max_elements=max_elements)


def encode_response(key: ApiKey, version: int, value: Mapping[str, Any] | Struct) -> bytes:
    """Encode a response's body; keys that are missing in a mapping get their defaults.

    Raises:
        AssertionError: The value is no such response (our fault, see Message.encode).
    """
    return response_message(key).encode(version, value)


@cache
def request_message(key: ApiKey) -> Message:
    """Return the compiled definition of a key's request.

    Raises:
        LookupError: There is no definition for the key.
    """
    return _load(key, "Request")


@cache
def response_message(key: ApiKey) -> Message:
    """Return the compiled definition of a key's response; raises as `request_message` does."""
    return _load(key, "Response")


def has_message(key: ApiKey) -> bool:
    """Tell whether there is a definition for the key."""
    try:
        request_message(key)
    except LookupError:
        return False
    return True


def _load(key: ApiKey, kind: str) -> Message:
    name = "".join(word.capitalize() for word in key.name.split("_")) + kind
    spec = find_spec("kafka")
    assert spec is not None, "kafka-python is not installed"
    assert spec.origin is not None
    path = Path(spec.origin).parent.joinpath(*_RESOURCES, f"{name}.json")
    try:
        text = cast("_DataLoader", spec.loader).get_data(str(path))
    except OSError as error:
        raise LookupError(f"kafka-python has no definition of {name}") from error
    schema = parse_json_schema(text.decode())
    assert schema.number == key, f"{name} is of API key {schema.number}"
    return Message(schema)
