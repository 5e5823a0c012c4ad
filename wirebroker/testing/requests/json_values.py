"""Decoded requests as JSON: bytes become {"base64": "…"}."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final, cast

_MARK: Final = "base64"


def to_json(value: Any) -> Any:
    """Return a decoded message, in nested dicts and lists, as JSON values."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {_MARK: b64encode(cast("bytes", value)).decode()}
    if isinstance(value, dict):
        return {name: to_json(element) for name, element in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [to_json(element) for element in cast("list[Any]", value)]
    return value


def from_json(value: Any) -> Any:
    """Return the argument of `to_json` from its result."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if fields.keys() == {_MARK}:
            return b64decode(fields[_MARK])
        return {name: from_json(element) for name, element in fields.items()}
    if value.__class__ is list:
        return [from_json(element) for element in value]
    return value
