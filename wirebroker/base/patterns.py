"""Regular expressions that a peer sends (re2's only door).

RE2 matches in time linear in the text, whatever the pattern: Python's own engine could be made to
hold the loop for years. Kafka uses the same language (RE2/J). Imported at first use.

Source: KIP-1152 (patterns for transactional ids).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import re

# A compiled pattern takes some hundred bytes a character, more with counted repetitions.
_MOST_CHARACTERS = 10_000
_MOST_BYTES = 1 << 20


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a peer's pattern.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION: it is none, or takes more than a megabyte.
    """
    re2: Any = importlib.import_module("re2")  # untyped
    if len(text) > _MOST_CHARACTERS:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, "the pattern is too long")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        pattern: re.Pattern[str] = re2.compile(text, options)
    except re2.error as error:
        (why,) = error.args  # bytes
        said = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, said) from None
    return pattern
