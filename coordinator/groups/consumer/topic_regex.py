"""Regular expressions over topic names, in RE2's syntax; they match whole names.

Source: Kafka's Utils.throwIfRegularExpressionIsInvalid, TopicRegexResolver (com.google.re2j).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import KafkaError, shortened
from wirebroker.coordinator.patterns import compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence

    from wirebroker.base.clock import Steps

# Of a compiled expression: a match then takes at most a few milliseconds.
_MOST_BYTES: Final = 256 << 10


def compiled(regex: str) -> re.Pattern[str]:
    """Compile an expression.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        return compile_pattern(regex, _MOST_BYTES)
    except KafkaError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression"
        raise KafkaError(error.code, shortened(f"{message}: {error.message}.")) from None


def matching_topics(regexes: Sequence[str], names: Iterable[str]) -> Steps[dict[str, set[str]]]:
    """Return the topics that match each expression; an invalid one matches none."""
    patterns: dict[str, re.Pattern[str]] = {}
    found: dict[str, set[str]] = {regex: set() for regex in regexes}
    for regex in regexes:
        try:
            patterns[regex] = compiled(regex)
        except KafkaError:
            # From a coordinator with another dialect; Kafka ignores it too.
            continue
        yield
    for name in names:
        for regex, pattern in patterns.items():
            if pattern.fullmatch(name):
                found[regex].add(name)
            yield
    return found
