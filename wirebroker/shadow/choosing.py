"""The choice of topics to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.patterns import compile_pattern
from wirebroker.client.errors import ClientError
from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def topic_filter(patterns: Sequence[str]) -> Callable[[str, bool], bool]:
    """Return a function of a topic's name, and whether it is internal, that selects topics.

    Args:
        patterns: Regular expressions of whole names; an internal topic needs its exact name.

    Raises:
        ClientError: A pattern is invalid.
    """
    try:
        compiled = [compile_pattern(pattern) for pattern in patterns]
    except KafkaError as error:
        raise ClientError(f"{' '.join(patterns)} is not a regular expression: {error}") from None

    def is_wanted(name: str, is_internal: bool) -> bool:
        if is_internal or name.startswith("__"):
            return name in patterns
        return any(pattern.fullmatch(name) for pattern in compiled)

    return is_wanted
