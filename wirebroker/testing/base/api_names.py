"""APIs and errors by name: "produce", "PRODUCE", or an enum member."""

from __future__ import annotations

from enum import Enum

from wirebroker.client.errors import did_you_mean
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


def api_named(name: str | Enum) -> ApiKey:
    """Return an API key by name; raise ValueError if it is unknown."""
    text = _text(name)
    if text not in ApiKey.__members__:
        hint = did_you_mean(text, ApiKey.__members__)
        raise ValueError(f"no request is called {text}{hint}")
    return ApiKey[text]


def error_named(name: str | Enum) -> ErrorCode:
    """Return an error code by name; raise ValueError if it is unknown."""
    text = _text(name)
    if text not in ErrorCode.__members__:
        hint = did_you_mean(text, ErrorCode.__members__)
        raise ValueError(f"no error is called {text}{hint}")
    return ErrorCode[text]


def _text(name: str | Enum) -> str:
    return (name.name if isinstance(name, Enum) else name).upper().replace("-", "_")
