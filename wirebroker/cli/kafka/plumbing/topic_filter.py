"""Topics chosen by a regular expression, as Kafka's tools do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def topic_filter(
    text: str | None, *, exclude_internal: bool = False
) -> Callable[[str, bool], bool]:
    """Return what tells whether a topic is meant, by its name and whether it is Kafka's own.

    Args:
        text: Names with commas or bars between them, or any expression that matches whole names;
            None is all.
        exclude_internal: Whether Kafka's own are left out.

    Raises:
        click.UsageError: It is no expression.
    """
    try:
        wanted = re.compile((text or ".*").strip().strip("\"'").replace(",", "|").replace(" ", ""))
    except re.error as error:
        raise click.UsageError(f"{text} is no regular expression: {error}") from None

    def is_wanted(name: str, is_internal: bool) -> bool:
        return bool(wanted.fullmatch(name)) and not (is_internal and exclude_internal)

    return is_wanted
