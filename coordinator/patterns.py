"""Regular expressions from peers; the only module that imports re2.

RE2 (in Kafka: RE2/J) matches in linear time; Python's engine could hold the loop for years.

Source: KIP-1152 (patterns for transactional ids).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import re

# A compiled pattern takes about 100 bytes per character, more with repetitions.
_MOST_CHARACTERS = 10_000
_MOST_BYTES = 1 << 20


def compile_pattern(text: str, most_bytes: int = _MOST_BYTES) -> re.Pattern[str]:
    """Compile a peer's pattern, without capture groups.

    The time of a match grows with the size of the compiled pattern.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION: invalid, too long, or larger than `most_bytes`
            compiled.
    """
    re2: Any = importlib.import_module("re2")
    if len(text) > _MOST_CHARACTERS:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, "the pattern is too long")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = most_bytes
    # Filling thousands of groups takes seconds.
    options.never_capture = True
    try:
        pattern: re.Pattern[str] = re2.compile(text, options)
    except re2.error as error:
        (detail,) = error.args
        message = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
    return pattern
