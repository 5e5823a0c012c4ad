"""Answers of many elements, which a thread encodes since nobody knows how long they get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_long(answer: Mapping[str, Any]) -> bool:
    """Tell whether an answer has more than one element."""
    arrays: list[list[Any]] = [each for each in answer.values() if isinstance(each, list)]
    return sum(map(len, arrays)) > 1


def as_response(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer for the dispatcher, marked if it is long."""
    return LargeResponse(answer) if is_long(answer) else answer
