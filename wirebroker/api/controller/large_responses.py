"""Responses with many elements of unknown size, which a thread encodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Mapping


def elements_of(answer: Mapping[str, Any]) -> int:
    """Return the number of elements in a response's arrays."""
    arrays: list[list[Any]] = [value for value in answer.values() if isinstance(value, list)]
    return sum(map(len, arrays))


def as_response(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a response for the dispatcher, marked if it is long."""
    return LargeResponse(answer) if elements_of(answer) > 1 else answer
