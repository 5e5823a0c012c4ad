"""Answers of many elements, which a thread encodes since nobody knows how long they get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Mapping


def elements_of(answer: Mapping[str, Any]) -> int:
    """Return how many elements an answer's arrays have."""
    arrays: list[list[Any]] = [each for each in answer.values() if isinstance(each, list)]
    return sum(map(len, arrays))


def as_response(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer for the dispatcher, marked if it is long."""
    return LargeResponse(answer) if elements_of(answer) > 1 else answer
