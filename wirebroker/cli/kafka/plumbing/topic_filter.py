"""Selection of topics by a regular expression, as in Kafka's tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def topic_filter(
    text: str | None, *, exclude_internal: bool = False
) -> Callable[[str, bool], bool]:
    """Return a function of a topic's name, and whether it is internal, that selects topics.

    `text` has names separated by commas or bars, or an expression for whole names; None selects
    all.

    Raises:
        click.UsageError: The expression is invalid.
    """
    try:
        pattern = re.compile((text or ".*").strip().strip("\"'").replace(",", "|").replace(" ", ""))
    except re.error as error:
        raise click.UsageError(f"{text} is no regular expression: {error}") from None

    def is_wanted(name: str, is_internal: bool) -> bool:
        return bool(pattern.fullmatch(name)) and not (is_internal and exclude_internal)

    return is_wanted
